//! The algebra against densities multiplied and added by hand; its language; its starts.

use super::*;
use crate::energy::exact::ExactPath;
use crate::energy::{Prior, Scale};
use crate::process::Process;
use crate::system::{Covariance, GaussianMixture, lower_pair, two_modes, upper_pair};

fn path(mixture: Result<GaussianMixture>) -> ExactPath {
    ExactPath::new(Process::default(), mixture.unwrap(), None).unwrap()
}

#[test]
fn densities_are_those_of_the_algebra_and_have_its_derivatives() {
    let (a, b, c) = (path(upper_pair()), path(lower_pair()), path(two_modes()));
    let members: [(&str, &dyn Energy); 3] = [("A", &a), ("B", &b), ("C", &c)];
    let time = 0.3;
    let points = c.sample(time, 6, 2);
    let density = |energy: &dyn Energy, time: f64, y: &[f64]| {
        let mut out = [0.0];
        energy.log_density(&[time], y, &mut out);
        out[0].exp()
    };
    type Formula = fn([f64; 3]) -> f64;
    let cases: [(&str, Formula); 7] = [
        ("A and B", |[a, b, _]| a * b),
        ("A or B", |[a, b, _]| 0.5 * a + 0.5 * b),
        ("0.3*A or 0.9*B", |[a, b, _]| 0.25 * a + 0.75 * b),
        ("A^0.5", |[a, _, _]| a.sqrt()),
        ("A and not B", |[a, b, _]| a / b.sqrt()),
        ("(A or 3*C)^2 and B^0.3", |[a, b, c]| {
            (0.25 * a + 0.75 * c).powi(2) * b.powf(0.3)
        }),
        ("A and A", |[a, _, _]| a * a),
    ];
    for (text, formula) in cases {
        let composed = Composition::new(&Expression::parse(text).unwrap(), &members).unwrap();
        let value = |time: f64, y: &[f64]| formula([&a, &b, &c].map(|e| density(e, time, y))).ln();
        let (mut u, mut only, mut score, mut rate) = ([0.0; 6], [0.0; 6], [0.0; 12], [0.0; 6]);
        composed.energy_and_score(&[time], &points, &mut u, &mut score);
        composed.energy(&[time; 6], &points, &mut only);
        composed.time_score(&[time], &points, &mut rate);
        for (row, y) in points.chunks_exact(2).enumerate() {
            let exact = value(time, y);
            assert!(
                (u[row] + exact).abs() < 1e-10 * (1.0 + exact.abs()),
                "{text}"
            );
            assert_eq!(u[row], only[row]);
            let h = 1e-5;
            for i in 0..2 {
                let (mut up, mut down) = (y.to_vec(), y.to_vec());
                up[i] += h;
                down[i] -= h;
                let slope = (value(time, &up) - value(time, &down)) / (2.0 * h);
                let found = score[2 * row + i];
                assert!(
                    (found - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                    "{text}: {found} {slope}"
                );
            }
            let slope = (value(time + h, y) - value(time - h, y)) / (2.0 * h);
            assert!(
                (rate[row] - slope).abs() < 1e-5 * (1.0 + slope.abs()),
                "{text}: {} {slope}",
                rate[row]
            );
        }
    }
}

/// An energy with a free energy of its own.
struct Shifted<'a>(&'a ExactPath, f64);

impl Energy for Shifted<'_> {
    fn dim(&self) -> usize {
        2
    }
    fn free_energy(&self, _time: f64) -> f64 {
        self.1
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.energy(times, points, out);
        out.iter_mut().for_each(|u| *u += self.1);
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.score(times, points, out);
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.0.time_score(times, points, out);
    }
}

#[test]
fn free_energies_of_members_count() {
    let (a, b) = (path(upper_pair()), path(lower_pair()));
    let moved = Shifted(&b, 7.0);
    let text = Expression::parse("0.2*A or 0.8*B").unwrap();
    let plain = Composition::new(&text, &[("A", &a), ("B", &b)]).unwrap();
    let other = Composition::new(&text, &[("A", &a), ("B", &moved)]).unwrap();
    let points = a.sample(0.4, 5, 1);
    let (mut u, mut v) = ([0.0; 5], [0.0; 5]);
    plain.energy(&[0.4], &points, &mut u);
    other.energy(&[0.4], &points, &mut v);
    for (u, v) in u.iter().zip(v) {
        assert!((u - v).abs() < 1e-10);
    }
}

#[test]
fn a_part_without_density_takes_no_share() {
    // Outside its support a member may have any score, NaN included.
    let half = crate::energy::Closure::new(2, |_t, y: &[f64], score: &mut [f64]| {
        score.fill(if y[0] > 0.0 { -1.0 } else { f64::NAN });
        if y[0] > 0.0 {
            y[0] + y[1]
        } else {
            f64::INFINITY
        }
    });
    let a = path(upper_pair());
    let text = Expression::parse("A or H").unwrap();
    let composed = Composition::new(&text, &[("A", &a), ("H", &half)]).unwrap();
    let (mut u, mut score, mut exact) = ([0.0], [0.0; 2], [0.0; 2]);
    composed.energy_and_score(&[0.2], &[-0.4, 0.3], &mut u, &mut score);
    a.score(&[0.2], &[-0.4, 0.3], &mut exact);
    // Half of the weight went to the part without density: log p = log(p_A / 2).
    let mut log_density = [0.0];
    a.log_density(&[0.2], &[-0.4, 0.3], &mut log_density);
    assert!((u[0] + log_density[0] - 2f64.ln()).abs() < 1e-12);
    for (a, b) in score.iter().zip(exact) {
        assert!((a - b).abs() < 1e-12);
    }
}

#[test]
fn expressions_are_read_as_people_write_them() {
    let name = Expression::name;
    let parse = |text: &str| Expression::parse(text).unwrap();
    assert_eq!(parse("A and B"), name("A").and(name("B")));
    assert_eq!(parse(" a AND  b "), name("a").and(name("b")));
    assert_eq!(
        parse("0.3*A or 0.7 * B"),
        Expression::Or(vec![(0.3, name("A")), (0.7, name("B"))])
    );
    // Weakest or, then and, then not, then powers.
    assert_eq!(
        parse("A or B and not C^2"),
        Expression::Or(vec![
            (1.0, name("A")),
            (1.0, name("B").and(name("C").power(2.0).not(NOT_EXPONENT)))
        ])
    );
    assert_eq!(parse("A^1e-1"), name("A").power(0.1));
    assert_eq!(parse("model-1 and (x_2)"), name("model-1").and(name("x_2")));
    for text in [
        "A and B",
        "0.3*A or 0.7*(B and C)",
        "(A and B)^0.5",
        "A and (B^-0.5)",
    ] {
        let expression = parse(text);
        assert_eq!(parse(&expression.to_string()), expression, "{expression}");
    }
    assert_eq!(parse("B and A or B").names(), ["B", "A"]);
}

#[test]
fn what_cannot_be_read_is_pointed_at() {
    let refused = |text: &str| Expression::parse(text).unwrap_err().to_string();
    for (text, at, words) in [
        ("A and", 6, "expected the name"),
        ("", 1, "expected the name"),
        ("A B", 3, "expected 'and' or 'or'"),
        ("(A and B", 9, "not closed"),
        ("A)", 2, "no '('"),
        ("0.3*A", 1, "a weight belongs to"),
        ("0.3 A or B", 5, "expected '*'"),
        ("-1*A or B", 1, "must be positive"),
        ("A^", 3, "expected a number"),
        ("A & B", 3, "'&' has no meaning"),
        ("1.2.3*A or B", 1, "not a number"),
        ("ä and ü!", 8, "'!' has no meaning"),
    ] {
        let message = refused(text);
        assert!(
            message.contains(words) && message.contains(&format!("character {at}")),
            "{text}: {message}"
        );
    }
    let deep = format!("{}A{}", "(".repeat(500), ")".repeat(500));
    assert!(refused(&deep).contains("nested too deeply"));
}

#[test]
fn members_and_powers_are_checked() {
    let (a, line) = (
        path(upper_pair()),
        crate::energy::Closure::new(1, |_t, _y: &[f64], _s: &mut [f64]| 0.0),
    );
    let members: [(&str, &dyn Energy); 2] = [("A", &a), ("L", &line)];
    let refused = |text: &str| {
        let expression = Expression::parse(text).unwrap();
        Composition::new(&expression, &members)
            .err()
            .expect("refused")
            .to_string()
    };
    assert!(refused("A and X").contains("'X'") && refused("A and X").contains("A, L"));
    assert!(refused("A and L").contains("same dimension"));
    assert!(refused("A^-1").contains("above -1") && refused("A^0").contains("not 0"));
    assert!(refused("A^1000").contains("up to 32"));
    for bad in [
        Expression::And(vec![]),
        Expression::Or(vec![]),
        Expression::name("A").or(1.5, Expression::name("A")),
    ] {
        assert!(Composition::new(&bad, &members).is_err() || bad.names().is_empty());
    }
}

#[test]
fn starts_follow_the_same_algebra() {
    // Round ones, and ones that are wider along one column.
    starts([Scale::Common(1.1), Scale::Common(0.7)]);
    starts([Scale::Columns(vec![1.1, 0.8]), Scale::Common(0.7)]);
    // Correlated ones, beside one that is not.
    let matrix = Scale::Matrix(vec![vec![1.1], vec![0.5, 0.8]]);
    starts([matrix, Scale::Columns(vec![0.7, 0.6])]);
}

fn starts(stds: [Scale; 2]) {
    let prior = |m: [f64; 2], std: &Scale| Prior {
        mean: m.to_vec(),
        std: std.clone(),
    };
    let priors = [
        ("A", prior([0.3, -0.2], &stds[0])),
        ("B", prior([-0.5, 0.4], &stds[1])),
    ];
    let law = |i: usize| priors[i].1.mixture().unwrap();
    let (a, b) = (law(0), law(1));
    for (text, formula) in [
        (
            "A and B",
            &(|y: &[f64]| a.log_density(y) + b.log_density(y)) as &dyn Fn(&[f64]) -> f64,
        ),
        ("0.2*A or 0.8*B", &|y| {
            (0.2 * a.log_density(y).exp() + 0.8 * b.log_density(y).exp()).ln()
        }),
        ("A^2 and not B", &|y| {
            2.0 * a.log_density(y) - 0.5 * b.log_density(y)
        }),
        ("(A or B) and A", &|y| {
            (0.5 * a.log_density(y).exp() + 0.5 * b.log_density(y).exp()).ln() + a.log_density(y)
        }),
    ] {
        let start = start_of(&Expression::parse(text).unwrap(), &priors).unwrap();
        // Equal up to one constant.
        let gap = |y: &[f64]| start.log_density(y) - formula(y);
        let first = gap(&[0.0, 0.0]);
        for y in [[0.5, 0.1], [-1.3, 2.0], [3.0, -1.0]] {
            assert!((gap(&y) - first).abs() < 1e-9, "{text}");
        }
    }
    // A power of a mixture starts from one Gaussian of its mean and variance.
    let whole = start_of(&Expression::parse("(A or B)^2").unwrap(), &priors).unwrap();
    assert_eq!(whole.components(), 1);
    let message = start_of(&Expression::parse("A and not (B^3)").unwrap(), &priors)
        .unwrap_err()
        .to_string();
    assert!(message.contains("smaller powers"), "{message}");
    // One Gaussian with the moments of both: masses one half, at the given means.
    let both = start_of(&Expression::parse("(A or B)^1").unwrap(), &priors).unwrap();
    assert_eq!(both.components(), 1);
    let full = |std: &Scale| {
        Prior {
            mean: vec![0.0; 2],
            std: std.clone(),
        }
        .mixture()
        .unwrap()
        .component_covariance(0)
    };
    let (first, second) = (full(&stds[0]), full(&stds[1]));
    let gaps = [0.8, -0.6];
    let total = |at: usize| 0.5 * (first[at] + second[at]) + gaps[at / 2] * gaps[at % 2] / 4.0;
    let expected = match stds[0] {
        Scale::Common(_) => {
            let mean = 0.5 * (total(0) + total(3));
            [mean, 0.0, 0.0, mean]
        }
        Scale::Columns(_) => [total(0), 0.0, 0.0, total(3)],
        Scale::Matrix(_) => [total(0), total(1), total(2), total(3)],
    };
    let found = both.component_covariance(0);
    assert!(
        found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-12),
        "{found:?} {expected:?}"
    );
    let fourth = start_of(&Expression::parse("A^4").unwrap(), &priors).unwrap();
    let isotropic = matches!(fourth.covariance(), Covariance::Isotropic(_));
    assert_eq!(isotropic, matches!(stds[0], Scale::Common(_)));
    for (found, own) in fourth.component_covariance(0).iter().zip(first) {
        assert!((found - own / 4.0).abs() < 1e-12);
    }
}
