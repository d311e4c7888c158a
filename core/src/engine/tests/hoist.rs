//! What all units share is computed once, and the numbers are those of units that compute it each for itself.

use super::{UNITS, evaluate, numbers};
use crate::engine::*;

const ROWS: usize = 4;
const HEADS: usize = 2;
const WIDTH: usize = 2 * 5;

/// A layer of attention in which queries, keys and values come from a table of `levels` rows; places alone belong to units. Its numbers and
/// their derivatives by the places.
fn attention(levels: usize) -> (Graph, Vec<Node>) {
    let mut g = Graph::new();
    let blocks = Blocks {
        rows: ROWS,
        heads: HEADS,
    };
    let slot = g.index(1);
    let table = g.input(Rows::Global(levels), ROWS * 3).0;
    let [q, v] = [3, 3].map(|k| g.input(Rows::Global(k), WIDTH).0);
    let bias = g.input(Rows::Global(1), WIDTH).0;
    let out = g.input(Rows::Global(WIDTH), 7).0;
    let places = g.input(Rows::Unit(ROWS), WIDTH).0;
    let h = g.lookup(table, slot);
    let h = g.reshape(h, Rows::Unit(ROWS), 3);
    let h = g.unary(Function::Silu(0), h);
    let q = g.matmul(h, q, false);
    let q = g.bias(q, bias);
    let v = g.matmul(h, v, false);
    let scores = g.scores(q, places, blocks);
    let rows = g.shape(scores).rows;
    let scores = g.reshape(scores, Rows::Unit(ROWS * HEADS), ROWS);
    let weights = g.softmax(scores);
    let weights = g.reshape(weights, rows, HEADS * ROWS);
    let blend = g.blend(weights, v, blocks, false);
    let read = g.matmul(blend, out, false);
    let square = g.row_dot(read, read);
    let slope = g.grad_of_sum(square, &[places])[0];
    let bend = g.row_dot(slope, slope);
    let second = g.grad_of_sum(bend, &[places])[0];
    (g, vec![h, q, read, slope, second])
}

#[test]
fn shared_rows_give_the_numbers_of_rows_of_units() {
    for isa in Isa::available() {
        let (shared, outputs) = attention(1);
        let (own, own_outputs) = attention(2);
        let one = numbers(ROWS * 3, 5);
        let mut values: Vec<Vec<f64>> = vec![one.clone()];
        let sizes = [3 * WIDTH, 3 * WIDTH, WIDTH, WIDTH * 7];
        values.extend(sizes.iter().zip(6..).map(|(n, seed)| numbers(*n, seed)));
        values.push(numbers(UNITS * ROWS * WIDTH, 11));
        let index = [vec![0; UNITS]];
        let found = evaluate(&shared, &outputs, &values, &index, isa);
        // A second row that nobody looks up.
        values[0] = [one, numbers(ROWS * 3, 99)].concat();
        let expected = evaluate(&own, &own_outputs, &values, &index, isa);
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found.len(), expected.len());
            for (a, b) in found.iter().zip(expected) {
                assert!(
                    (a - b).abs() < 1e-13 * (1.0 + b.abs()),
                    "output {k}: {a} and {b}"
                );
            }
        }
    }
}

#[test]
fn what_is_shared_is_no_work_of_tiles() {
    let plan = |levels| {
        let (g, outputs) = attention(levels);
        Plan::new(&g, &outputs[2..], 3, Isa::PORTABLE)
    };
    let (shared, own) = (plan(1), plan(2));
    let per_unit = |plan: &Plan| plan.flops(2) - plan.flops(1);
    assert!(per_unit(&shared) < 0.6 * per_unit(&own));
    // The first layer, its offsets and its activation.
    let text = shared.to_string();
    let tiles = || text.lines().filter(|line| line.starts_with("tile"));
    assert!(
        tiles().all(|line| !line.contains("silu") && !line.contains("bias")),
        "{text}"
    );
}
