//! Every primitive, forward and reverse to third order, against central differences in f64; kernel paths, tiles and
//! threads against each other; the whole against num-dual.

use std::sync::{Arc, Mutex};

use super::*;

mod bands;
mod hoist;

/// Reproducible numbers in (-1, 1) without structure.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

const UNITS: usize = 3;

fn len(shape: Shape) -> usize {
    match shape.rows {
        Rows::Unit(m) => m * UNITS * shape.cols,
        Rows::Global(m) => m * shape.cols,
    }
}

/// Runs `outputs` on one tile; `values[k]` fills input slot `k`, `index[k]` index slot `k`.
fn evaluate(
    g: &Graph,
    outputs: &[Node],
    values: &[Vec<f64>],
    index: &[Vec<u32>],
    isa: Isa,
) -> Vec<Vec<f64>> {
    let mut program = Program::<f64>::with_tile(g, outputs, Arc::new(Pool::new(1)), isa, UNITS);
    for (slot, value) in values.iter().enumerate() {
        if matches!(g.inputs[slot].rows, Rows::Global(_)) {
            program.set_global(slot, value);
        }
    }
    let taken = Mutex::new(vec![Vec::new(); outputs.len()]);
    let unit = |k: usize| matches!(g.shape(outputs[k]).rows, Rows::Unit(_));
    program.run(
        &[],
        UNITS,
        &|_, inputs| {
            for (slot, value) in values.iter().enumerate() {
                if matches!(g.inputs[slot].rows, Rows::Unit(_)) {
                    inputs.numbers(slot).copy_from_slice(value);
                }
            }
            for (slot, value) in index.iter().enumerate() {
                inputs.index(slot).copy_from_slice(value);
            }
        },
        &|_, _, out| {
            for k in (0..outputs.len()).filter(|&k| unit(k)) {
                taken.lock().unwrap()[k] = out.numbers(k).to_vec();
            }
        },
    );
    let mut taken = taken.into_inner().unwrap();
    for k in (0..outputs.len()).filter(|&k| !unit(k)) {
        taken[k] = program.global(k).to_vec();
    }
    taken
}

/// `sum_k <node_k, seed_k>`, a number for each order of differentiation.
type Pairs = Vec<(Node, Node)>;

fn total(g: &Graph, pairs: &Pairs, values: &[Vec<f64>], index: &[Vec<u32>], isa: Isa) -> f64 {
    let outputs: Vec<Node> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    let values = evaluate(g, &outputs, values, index, isa);
    values
        .chunks(2)
        .map(|p| p[0].iter().zip(&p[1]).map(|(x, y)| x * y).sum::<f64>())
        .sum()
}

/// Differentiates `build` three times along fixed directions; each order against the central difference of the order
/// before it.
fn check(name: &str, leaves: &[Shape], shift: f64, build: impl Fn(&mut Graph, &[Node]) -> Node) {
    for isa in Isa::available() {
        let mut g = Graph::new();
        let slots = g.index(2);
        assert_eq!(slots, 0);
        let index = vec![vec![1, 0, 2, 2, 0, 1]];
        let mut values = Vec::new();
        let mut nodes = Vec::new();
        for (k, &shape) in leaves.iter().enumerate() {
            nodes.push(g.input(shape.rows, shape.cols).0);
            values.push(
                numbers(len(shape), 10 + k as u64)
                    .iter()
                    .map(|x| x + shift)
                    .collect::<Vec<f64>>(),
            );
        }
        let out = build(&mut g, &nodes);
        let seed = g.shape(out);
        let weight = g.input(seed.rows, seed.cols).0;
        values.push(numbers(len(seed), 77));
        let mut pairs: Vec<Pairs> = vec![vec![(out, weight)]];
        let mut directions = Vec::new();
        for order in 0..3 {
            let gradient = g.grad(&pairs[order].clone(), &nodes);
            let mut next = Vec::new();
            let mut along = Vec::new();
            for (k, &shape) in leaves.iter().enumerate() {
                let direction = numbers(len(shape), 1000 * (order as u64 + 1) + k as u64);
                next.push((gradient[k], g.input(shape.rows, shape.cols).0));
                values.push(direction.clone());
                along.push(direction);
            }
            pairs.push(next);
            directions.push(along);
        }
        for order in 0..3 {
            let h = 1e-5;
            let moved = |sign: f64| {
                let mut values = values.clone();
                for (value, direction) in values.iter_mut().zip(&directions[order]) {
                    value
                        .iter_mut()
                        .zip(direction)
                        .for_each(|(v, d)| *v += sign * h * d);
                }
                total(&g, &pairs[order], &values, &index, isa)
            };
            let difference = (moved(1.0) - moved(-1.0)) / (2.0 * h);
            let exact = total(&g, &pairs[order + 1], &values, &index, isa);
            let error = (exact - difference).abs() / (1.0 + exact.abs());
            assert!(
                error < 1e-6,
                "{name}, order {}, {isa}: {exact} against {difference}",
                order + 1
            );
        }
    }
}

fn unit(m: usize, cols: usize) -> Shape {
    Shape::new(Rows::Unit(m), cols)
}

fn global(m: usize, cols: usize) -> Shape {
    Shape::new(Rows::Global(m), cols)
}

#[test]
fn products() {
    check("matmul", &[unit(2, 3), global(3, 5)], 0.0, |g, x| {
        g.matmul(x[0], x[1], false)
    });
    check(
        "matmul transposed",
        &[unit(2, 3), global(5, 3)],
        0.0,
        |g, x| g.matmul(x[0], x[1], true),
    );
    check(
        "global matmul",
        &[global(4, 3), global(3, 5)],
        0.0,
        |g, x| g.matmul(x[0], x[1], false),
    );
    check("outer", &[unit(2, 3), unit(2, 4)], 0.0, |g, x| {
        g.outer(x[0], x[1])
    });
    check(
        "global outer",
        &[global(2, 3), global(2, 4)],
        0.0,
        |g, x| g.outer(x[0], x[1]),
    );
    check(
        "outer read by rows",
        &[unit(2, 3), unit(2, 4)],
        0.0,
        |g, x| {
            let w = g.outer(x[0], x[1]);
            let y = g.matmul(x[1], w, true);
            g.unary(Function::Sin, y)
        },
    );
}

#[test]
fn rows_and_units() {
    check("broadcast_rows", &[global(1, 4)], 0.0, |g, x| {
        let y = g.broadcast_rows(x[0], Rows::Unit(2));
        g.unary(Function::Sin, y)
    });
    check("sum_rows", &[unit(2, 4)], 0.0, |g, x| {
        let y = g.unary(Function::Sin, x[0]);
        g.sum_rows(y)
    });
    check("bias", &[unit(2, 4), global(1, 4)], 0.0, |g, x| {
        let y = g.bias(x[0], x[1]);
        g.unary(Function::Sin, y)
    });
    check("gather", &[unit(2, 3)], 0.0, |g, x| {
        let y = g.gather(x[0], &[1, 0, 1, 1]);
        g.unary(Function::Sin, y)
    });
    check("segment_sum", &[unit(4, 3)], 0.0, |g, x| {
        let y = g.segment_sum(x[0], &[1, 0, 1, 1], 3);
        g.unary(Function::Sin, y)
    });
    check("gather of global rows", &[global(2, 3)], 0.0, |g, x| {
        let y = g.gather(x[0], &[1, 0, 1, 1]);
        g.unary(Function::Sin, y)
    });
    check(
        "segment_sum of global rows",
        &[global(4, 3)],
        0.0,
        |g, x| {
            let y = g.segment_sum(x[0], &[1, 0, 1, 1], 3);
            g.unary(Function::Sin, y)
        },
    );
    check("lookup", &[global(3, 4)], 0.0, |g, x| {
        let y = g.lookup(x[0], 0);
        g.unary(Function::Sin, y)
    });
    check("scatter", &[unit(2, 4)], 0.0, |g, x| {
        let y = g.scatter(x[0], 0, 3);
        g.unary(Function::Sin, y)
    });
    check("reshape", &[unit(2, 6)], 0.0, |g, x| {
        let y = g.reshape(x[0], Rows::Unit(4), 3);
        let s = g.row_sum(y);
        g.unary(Function::Sin, s)
    });
}

#[test]
fn elements() {
    check("add", &[unit(2, 3), unit(2, 3)], 0.0, |g, x| {
        let s = g.unary(Function::Sin, x[0]);
        g.add(s, x[1])
    });
    check("sub", &[unit(2, 3), unit(2, 3)], 0.0, |g, x| {
        let s = g.unary(Function::Sin, x[1]);
        g.sub(x[0], s)
    });
    check("mul", &[unit(2, 3), unit(2, 3)], 0.0, |g, x| {
        let s = g.unary(Function::Sin, x[1]);
        g.mul(x[0], s)
    });
    check("affine", &[unit(2, 3)], 0.0, |g, x| {
        let s = g.affine(x[0], -1.7, 0.4);
        g.unary(Function::Sin, s)
    });
    for function in [
        Function::Silu(0),
        Function::Silu(1),
        Function::Silu(2),
        Function::Silu(3),
        Function::Gelu(0),
        Function::Gelu(1),
        Function::Gelu(2),
        Function::Gelu(3),
        Function::Sigmoid,
        Function::Softplus,
        Function::Exp,
        Function::Sin,
        Function::Cos,
    ] {
        // 40 columns: whole vector blocks and a remainder.
        check(&format!("{function:?}"), &[unit(2, 40)], 0.3, |g, x| {
            g.unary(function, x[0])
        });
    }
    check("ln", &[unit(2, 5)], 2.5, |g, x| g.unary(Function::Ln, x[0]));
    for p in [-1.0, 0.5, -0.5, 1.5, 2.0, 3.0] {
        check(&format!("power {p}"), &[unit(2, 35)], 2.5, |g, x| {
            g.power(x[0], p)
        });
    }
}

#[test]
fn within_rows() {
    check("mul_column", &[unit(2, 3), unit(2, 1)], 0.0, |g, x| {
        let s = g.unary(Function::Sin, x[1]);
        g.mul_column(x[0], s)
    });
    check("row_dot", &[unit(2, 35), unit(2, 35)], 0.0, |g, x| {
        let s = g.row_dot(x[0], x[1]);
        g.unary(Function::Sin, s)
    });
    check("row_sum", &[unit(2, 35)], 0.0, |g, x| {
        let s = g.row_sum(x[0]);
        g.unary(Function::Sin, s)
    });
    check(
        "broadcast_columns",
        &[unit(2, 1), unit(2, 3)],
        0.0,
        |g, x| {
            let s = g.broadcast_columns(x[0], 3);
            let s = g.add(s, x[1]);
            g.unary(Function::Sin, s)
        },
    );
    check("log_sum_exp", &[unit(2, 5)], 0.0, |g, x| {
        g.log_sum_exp(x[0])
    });
    check("softmax", &[unit(2, 5)], 0.0, |g, x| g.softmax(x[0]));
    check("slice", &[unit(2, 5)], 0.0, |g, x| {
        let s = g.slice(x[0], 1, 3);
        g.unary(Function::Sin, s)
    });
    check("pad", &[unit(2, 2)], 0.0, |g, x| {
        let s = g.pad(x[0], 1, 5);
        g.unary(Function::Sin, s)
    });
    check("concat", &[unit(2, 2), unit(2, 3)], 0.0, |g, x| {
        let s = g.concat(x[0], x[1]);
        g.unary(Function::Sin, s)
    });
    check(
        "squared_distance",
        &[unit(2, 3), unit(2, 3)],
        0.0,
        |g, x| {
            let s = g.squared_distance(x[0], x[1]);
            g.unary(Function::Sin, s)
        },
    );
}

#[test]
fn attention() {
    // Two blocks of three rows or of others; heads of 37 columns are whole strips and a remainder.
    for (n, heads, width) in [(3, 2, 3), (3, 1, 37), (5, 2, 19), (7, 1, 2)] {
        let blocks = Blocks { rows: n, heads };
        let (wide, square) = (unit(2 * n, heads * width), unit(2 * n, heads * n));
        check("scores", &[wide, wide], 0.0, |g, x| {
            let s = g.scores(x[0], x[1], blocks);
            g.unary(Function::Sin, s)
        });
        for transposed in [false, true] {
            check("blend", &[square, wide], 0.0, |g, x| {
                let s = g.blend(x[0], x[1], blocks, transposed);
                g.unary(Function::Sin, s)
            });
        }
        check("attention", &[wide, wide, wide], 0.0, |g, x| {
            let s = g.scores(x[0], x[1], blocks);
            let s = g.reshape(s, Rows::Unit(2 * n * heads), n);
            let s = g.softmax(s);
            let s = g.reshape(s, Rows::Unit(2 * n), heads * n);
            g.blend(s, x[2], blocks, false)
        });
    }
    check("head_by_head", &[global(2, 6), unit(2, 6)], 0.0, |g, x| {
        let each = g.head_by_head(x[0], 3);
        let y = g.matmul(x[1], each, true);
        g.unary(Function::Sin, y)
    });
    let mut g = Graph::new();
    let a = g.input(Rows::Global(2), 6).0;
    let each = g.head_by_head(a, 3);
    let values = [(1..=12).map(f64::from).collect()];
    let found = evaluate(&g, &[each], &values, &[], Isa::PORTABLE);
    let expected: [[u8; 6]; 6] = [
        [1, 2, 0, 0, 0, 0],
        [7, 8, 0, 0, 0, 0],
        [0, 0, 3, 4, 0, 0],
        [0, 0, 9, 10, 0, 0],
        [0, 0, 0, 0, 5, 6],
        [0, 0, 0, 0, 11, 12],
    ];
    assert_eq!(
        found[0],
        expected
            .concat()
            .into_iter()
            .map(f64::from)
            .collect::<Vec<_>>()
    );
}

#[test]
fn equal_nodes_are_one_node() {
    let mut g = Graph::new();
    let (x, _) = g.input(Rows::Unit(1), 3);
    let (y, _) = g.input(Rows::Unit(1), 3);
    assert_eq!(g.add(x, y), g.add(y, x));
    assert_eq!(g.gather(x, &[0, 0]), g.gather(x, &[0, 0]));
    let before = g.entries.len();
    let s = g.row_dot(x, y);
    let first = g.grad_of_sum(s, &[x]);
    let grown = g.entries.len();
    assert_eq!(g.grad_of_sum(s, &[x]), first);
    assert!(grown > before && g.entries.len() == grown);
}

/// Third derivatives of the composite `sum_c silu(w_c y + b_c) exp(-y)` against num-dual, which shares no code with us.
#[test]
fn third_derivatives_agree_with_num_dual() {
    use num_dual::DualNum;
    let (w, b) = ([0.7, -1.3, 0.4], [0.2, 0.1, -0.5]);
    let mut g = Graph::new();
    let (y, slot) = g.input(Rows::Unit(1), 1);
    let wide = g.broadcast_columns(y, 3);
    let (weights, wslot) = g.input(Rows::Global(1), 3);
    let (bias, bslot) = g.input(Rows::Global(1), 3);
    let weights = g.broadcast_rows(weights, Rows::Unit(1));
    let z = g.mul(wide, weights);
    let z = g.bias(z, bias);
    let act = g.unary(Function::Silu(0), z);
    let sum = g.row_sum(act);
    let minus = g.scale(y, -1.0);
    let decay = g.unary(Function::Exp, minus);
    let f = g.mul(sum, decay);
    let mut orders = vec![f];
    for k in 0..3 {
        let next = g.grad_of_sum(orders[k], &[y])[0];
        orders.push(next);
    }
    let mut program = Program::<f64>::new(&g, &orders, Arc::new(Pool::new(1)), Isa::detect());
    program.set_global(wslot, &w);
    program.set_global(bslot, &b);
    let points = [-1.5, 0.3, 2.0];
    let found = Mutex::new(vec![[0.0; 4]; 3]);
    program.run(
        &[],
        3,
        &|u, inputs| inputs.numbers(slot).copy_from_slice(&points[u]),
        &|_, u, out| {
            for (i, u) in u.enumerate() {
                for k in 0..4 {
                    found.lock().unwrap()[u][k] = out.numbers(k)[i];
                }
            }
        },
    );
    for (&y, found) in points.iter().zip(found.into_inner().unwrap()) {
        let (f, f1, f2, f3) = num_dual::third_derivative(
            |y| {
                let mut sum = y * 0.0;
                for (w, b) in w.iter().zip(&b) {
                    let z = y * *w + *b;
                    sum += z / ((-z).exp() + 1.0);
                }
                sum * (-y).exp()
            },
            y,
        );
        for (found, exact) in found.iter().zip([f, f1, f2, f3]) {
            assert!(
                (found - exact).abs() < 1e-11 * (1.0 + exact.abs()),
                "{found} against {exact}"
            );
        }
    }
}

/// Sizes whose product or sum wraps around would make addresses outside of every buffer.
#[test]
fn sizes_that_cannot_be_are_refused() {
    type Build = fn(&mut Graph) -> Node;
    let cases: [(&str, Build); 8] = [
        ("offset", |g| g.param(usize::MAX - 3, 2, 2)),
        ("parameters", |g| g.param(0, 1 << 33, 1 << 33)),
        ("rows", |g| g.input(Rows::Unit(1 << 62), 4).0),
        ("global rows", |g| g.input(Rows::Global(1 << 62), 4).0),
        ("slice", |g| {
            let (a, _) = g.input(Rows::Unit(2), 3);
            g.slice(a, usize::MAX - 1, 3)
        }),
        ("slice beyond", |g| {
            let (a, _) = g.input(Rows::Unit(2), 3);
            g.slice(a, 2, 2)
        }),
        ("pad", |g| {
            let (a, _) = g.input(Rows::Unit(2), 3);
            g.pad(a, usize::MAX - 1, 3)
        }),
        ("constant", |g| {
            g.constant(1.0, Shape::new(Rows::Unit(usize::MAX), 2))
        }),
    ];
    for (name, build) in cases {
        let refused = std::panic::catch_unwind(|| build(&mut Graph::new())).unwrap_err();
        let text = refused.downcast_ref::<String>().map_or("", String::as_str);
        assert!(!text.contains("overflow"), "{name}: {text}");
    }
    // Sizes that are possible alone and not in a tile.
    let mut g = Graph::new();
    let (a, _) = g.input(Rows::Unit(1 << 20), 1 << 19);
    let pool = Arc::new(Pool::new(1));
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Program::<f32>::with_tile(&g, &[a], pool, Isa::detect(), 1 << 50)
    }));
    assert!(refused.is_err());
}

/// Kernels flush denormal numbers; the code that fills and takes a tile is the caller's.
#[test]
fn callers_code_keeps_its_denormal_numbers() {
    let halved = || std::hint::black_box(f64::MIN_POSITIVE) / std::hint::black_box(2.0);
    let mut g = Graph::new();
    let (a, slot) = g.input(Rows::Unit(1), 1);
    let half = g.scale(a, 0.5);
    for threads in [1, 3] {
        let pool = Arc::new(Pool::new(threads));
        let mut program = Program::<f64>::new(&g, &[half], pool, Isa::detect());
        program.run(
            &[],
            100,
            &|_, inputs| {
                assert!(halved() > 0.0);
                inputs.numbers(slot).fill(f64::MIN_POSITIVE);
            },
            &|_, _, outputs| {
                assert!(halved() > 0.0);
                let flushed = cfg!(all(target_arch = "x86_64", not(miri)));
                assert!(outputs.numbers(0).iter().all(|x| (*x == 0.0) == flushed));
            },
        );
        assert!(halved() > 0.0);
    }
}

#[test]
fn factors_go_where_they_cost_least_and_differences_are_one_step() {
    let mut g = Graph::new();
    let rows = Rows::Unit(2);
    let [a, b] = [0, 1].map(|_| g.input(rows, 3).0);
    let column = g.input(rows, 1).0;
    let [minus, twice, third] = [-1.0, 2.0, 1.0 / 3.0].map(|factor| g.scale(b, factor));
    assert_eq!(g.add(a, minus), g.sub(a, b));
    assert_eq!(g.add(minus, a), g.sub(a, b));
    let sum = g.row_sum(b);
    assert_eq!(g.row_sum(twice), g.scale(sum, 2.0));
    let dot = g.row_dot(a, b);
    assert_eq!(g.row_dot(a, twice), g.scale(dot, 2.0));
    assert_eq!(g.row_dot(twice, a), g.scale(dot, 2.0));
    let doubled = g.scale(column, 2.0);
    assert_eq!(g.mul_column(twice, column), g.mul_column(b, doubled));
    // A factor that rounds stays where it is.
    let sum = g.scale(sum, 1.0 / 3.0);
    assert_ne!(g.row_sum(third), sum);
}

#[test]
fn powers_with_a_way_of_their_own_are_powers() {
    for isa in Isa::available() {
        let x: Vec<f64> = numbers(70, 3).iter().map(|x| 1.3 + x).collect();
        for p in [0.5, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, 0.7] {
            let mut out = vec![0.0; x.len()];
            // SAFETY: both hold so many numbers.
            unsafe {
                kernel::elementwise::power(isa, x.len(), p, x.as_ptr(), out.as_mut_ptr());
            }
            for (x, found) in x.iter().zip(out) {
                assert!((found / x.powf(p) - 1.0).abs() < 1e-14, "{isa} {x}^{p}");
            }
        }
    }
}
