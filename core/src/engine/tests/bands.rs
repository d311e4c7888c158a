//! Bands against whole tiles: units with many rows run block by block, and give what they give at once.

use super::numbers;
use crate::engine::*;
use std::sync::{Arc, Mutex};

const PARTICLES: usize = 18;
const WIDTH: usize = 20;

/// A graph over all pairs of particles that reads rows in every way bands must know of, with first and second derivatives.
struct Pairs {
    graph: Graph,
    outputs: Vec<Node>,
    positions: usize,
    parameters: usize,
}

impl Pairs {
    fn new() -> Pairs {
        let mut g = Graph::new();
        let (x, positions) = g.input(Rows::Unit(PARTICLES), 3);
        let mut offset = 0;
        let mut param = |g: &mut Graph, rows: usize, cols: usize| {
            offset += rows * cols;
            g.param(offset - rows * cols, rows, cols)
        };
        let (mut first, mut second, mut turned) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..PARTICLES {
            for j in (0..PARTICLES).filter(|&j| j != i) {
                first.push(i as u32);
                second.push(j as u32);
                let back = j * (PARTICLES - 1) + i - usize::from(i > j);
                turned.push(back as u32);
            }
        }
        let edges = first.len();
        let weights =
            [(3, WIDTH), (3, WIDTH), (1, WIDTH), (WIDTH, WIDTH)].map(|(r, c)| param(&mut g, r, c));
        let [bias, column, last] =
            [(1, WIDTH), (WIDTH, 1), (WIDTH, 2)].map(|(r, c)| param(&mut g, r, c));
        let (a, b) = (
            g.matmul(x, weights[0], false),
            g.matmul(x, weights[1], false),
        );
        let (a, b) = (g.gather(a, &first), g.gather(b, &second));
        let sum = g.add(a, b);
        let (from, to) = (g.gather(x, &first), g.gather(x, &second));
        let square = g.squared_distance(from, to);
        let of_square = g.matmul(square, weights[2], false);
        let z = g.add(sum, of_square);
        let hidden = g.unary(Function::Silu(0), z);
        let z = g.matmul(hidden, weights[3], false);
        let z = g.bias(z, bias);
        let message = g.unary(Function::Silu(0), z);
        let gate = g.matmul(message, column, false);
        let gate = g.unary(Function::Sigmoid, gate);
        let message = g.mul_column(message, gate);
        // Rows of the same kind in another order: what they read must be complete.
        let back = g.gather(message, &turned);
        let both = g.mul(message, back);
        let pair = g.matmul(both, last, false);
        let softmax = g.softmax(pair);
        let pair = g.mul(softmax, pair);
        // The same numbers as one row.
        let flat = g.reshape(pair, Rows::Unit(1), 2 * edges);
        let of_flat = g.row_dot(flat, flat);
        let of_particles = g.segment_sum(message, &first, PARTICLES);
        let again = g.gather(of_particles, &second);
        let again = g.row_dot(again, hidden);
        let again = g.unit_sum(again);
        let energy = g.add(of_flat, again);
        let score = g.grad_of_sum(energy, &[x])[0];
        let loss = g.row_dot(score, score);
        let loss = g.unit_sum(loss);
        let [w0, w1, w2, w3] = weights;
        let gradient = g.grad_of_sum(loss, &[w0, w1, w2, w3, bias, column, last]);
        let mut outputs = vec![loss, score, message];
        outputs.extend(gradient);
        Pairs {
            graph: g,
            outputs,
            positions,
            parameters: offset,
        }
    }

    /// All outputs of five units.
    fn run<T: Real>(&self, isa: Isa, threads: usize, tile: usize) -> (Vec<Vec<f64>>, String) {
        let plan = Plan::new(&self.graph, &self.outputs, tile, isa);
        self.run_plan::<T>(plan, threads)
    }

    fn run_plan<T: Real>(&self, plan: Plan, threads: usize) -> (Vec<Vec<f64>>, String) {
        let units = 5;
        let mut program = Program::<T>::of(plan, Arc::new(Pool::new(threads)));
        let cast = |x: Vec<f64>| x.into_iter().map(T::from_f64).collect::<Vec<T>>();
        let params = cast(numbers(self.parameters, 3));
        let points = cast(numbers(units * PARTICLES * 3, 4));
        let of_units = 3;
        let taken = Mutex::new(vec![vec![Vec::new(); units]; of_units]);
        program.run(
            &params,
            units,
            &|u, inputs| {
                let points = &points[u.start * PARTICLES * 3..u.end * PARTICLES * 3];
                inputs.numbers(self.positions).copy_from_slice(points);
            },
            &|_, u, out| {
                for k in 0..of_units {
                    let numbers = out.numbers(k);
                    for (part, u) in numbers.chunks(numbers.len() / u.len()).zip(u.clone()) {
                        taken.lock().unwrap()[k][u] = part.iter().map(|x| x.to_f64()).collect();
                    }
                }
            },
        );
        let mut all: Vec<Vec<f64>> = taken
            .into_inner()
            .unwrap()
            .into_iter()
            .map(|x| x.concat())
            .collect();
        for k in of_units..self.outputs.len() {
            all.push(program.global(k).iter().map(|x| x.to_f64()).collect());
        }
        (all, program.plan().to_string())
    }
}

#[test]
fn bands_give_what_whole_units_give() {
    let pairs = Pairs::new();
    for isa in Isa::available() {
        let (whole, plan) = pairs.run::<f64>(isa, 1, 2);
        assert!(!plan.contains("rows at a time"));
        let (banded, plan) = pairs.run::<f64>(isa, 1, 1);
        assert!(
            plan.contains("of 306 rows at a time") && plan.contains("Block("),
            "{plan}"
        );
        for (whole, banded) in whole.iter().zip(&banded) {
            let scale = whole.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(scale > 0.0 && whole.len() == banded.len());
            for (a, b) in whole.iter().zip(banded) {
                assert!((a - b).abs() < 1e-12 * scale, "{isa}: {a} against {b}");
            }
        }
    }
}

#[test]
fn activations_computed_again_take_less_memory_and_are_the_same() {
    let pairs = Pairs::new();
    for isa in Isa::available() {
        let plan = |large| Plan::within(&pairs.graph, &pairs.outputs, 1, isa, large);
        let kept = plan(usize::MAX);
        let again = plan(kept.arena_len() - 1);
        let small = plan(again.arena_len() - 1);
        let [before, after, least] = [&kept, &again, &small].map(|plan| plan.arena_len());
        assert!(after < before - 306 * WIDTH, "{after} after {before}");
        assert!(least < after, "{least} after {after}");
        let [kept, again, small] =
            [kept, again, small].map(|plan| pairs.run_plan::<f64>(plan, 1).0);
        assert!(kept == again, "{isa}");
        // Sums over other blocks round differently.
        for (whole, small) in kept.iter().zip(&small) {
            let scale = whole.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 * scale;
            assert!(whole.iter().zip(small).all(close), "{isa}");
        }
    }
}

#[test]
fn bands_do_not_know_threads() {
    let pairs = Pairs::new();
    let [one, two, three] = [1, 2, 3].map(|threads| pairs.run::<f32>(Isa::detect(), threads, 1).0);
    assert!(one == two && one == three);
}
