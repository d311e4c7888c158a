//! Values against plain Rust, derivatives against central differences, refusals in words.

use super::*;

fn names() -> Vec<String> {
    ["phi", "psi", "bond length"].map(String::from).to_vec()
}

fn number(text: &str) -> Expression {
    Expression::number(text, &names(), 3).unwrap()
}

#[test]
fn numbers_are_those_of_the_formula() {
    let row = [0.7_f64, -1.3, 2.1];
    let [a, b, c] = row;
    for (text, expected) in [
        ("phi + 2*psi - x2/4", a + 2.0 * b - c / 4.0),
        ("-phi^2", -(a * a)),
        ("2^3^2", 512.0),
        ("2**-1", 0.5),
        ("(phi - psi)*(phi + psi)", a * a - b * b),
        (
            "sin(phi)*cos(psi) + tan(0.3)",
            a.sin() * b.cos() + 0.3_f64.tan(),
        ),
        (
            "exp(-`bond length`) + log(x2) + sqrt(x2)",
            (-c).exp() + c.ln() + c.sqrt(),
        ),
        ("abs(psi) + min(phi, psi) + max(x0, 0)", 1.3 - 1.3 + 0.7),
        (
            "atan2(psi, phi) + tanh(phi) + sinh(phi) + cosh(phi)",
            b.atan2(a) + a.tanh() + a.sinh() + a.cosh(),
        ),
        (
            "asin(phi) + acos(phi) + atan(phi)",
            a.asin() + a.acos() + a.atan(),
        ),
        (
            "1e-3 + 2.5E2 + .5 + pi",
            1e-3 + 250.0 + 0.5 + std::f64::consts::PI,
        ),
        ("--3 - -2", 5.0),
    ] {
        let found = number(text).value(&row);
        assert!(
            (found - expected).abs() < 1e-12,
            "{text}: {found} {expected}"
        );
    }
}

#[test]
fn conditions_hold_where_they_should() {
    let row = [0.7, -1.3, 2.1];
    for (text, expected) in [
        ("phi > 0", true),
        ("phi > 0 and psi > 0", false),
        ("phi > 0 or psi > 0", true),
        ("not phi > 0", false),
        ("not not phi > 0", true),
        ("!(phi < 0) && psi <= -1.3", true),
        ("-2 < psi < -1", true),
        ("-2 < psi < -1.5", false),
        ("0 < phi and not (psi < -1 or x2 > 3)", false),
        ("x2 != 2", true),
        ("x2 == 2.1", true),
        ("phi > 0 or phi > 0 and phi < 0", true),
    ] {
        let found = Expression::condition(text, &names(), 3).unwrap();
        assert_eq!(found.holds(&row), expected, "{text}");
    }
}

#[test]
fn derivatives_are_exact() {
    let row = [0.7, -0.4, 2.1];
    for text in [
        "phi*psi + x2/phi - 3",
        "x2^phi + phi^3 + psi^2",
        "sin(phi*psi) + cos(x2) + tan(phi)",
        "exp(phi - x2) + log(x2 + phi) + sqrt(x2)",
        "abs(psi) + min(phi, psi*x2) + max(phi, psi)",
        "atan2(psi, x2) + tanh(phi) + sinh(psi) + cosh(phi*x2)",
        "asin(phi) + acos(psi) + atan(x2) - -phi",
        "(1 - cos(2*phi))*4 + (phi > 0.5 or psi > 3)*0 + phi",
    ] {
        let Ok(expression) = Expression::number(text, &names(), 3) else {
            // A condition is no number.
            assert!(text.contains('>'));
            continue;
        };
        let mut gradient = [0.0; 3];
        let value = expression.value_and_gradient(&row, &mut gradient);
        assert_eq!(value, expression.value(&row));
        for j in 0..3 {
            let at = |h: f64| {
                let mut row = row;
                row[j] += h;
                expression.value(&row)
            };
            let h = 1e-4;
            let slope = (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h);
            assert!(
                (gradient[j] - slope).abs() < 1e-8 * (1.0 + slope.abs()),
                "{text}, column {j}: {} {slope}",
                gradient[j]
            );
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_in_words() {
    for (text, words) in [
        ("", "the end"),
        ("phi >", "the end"),
        ("phi", "a condition"),
        ("chi > 0", "phi, psi, bond length, x0 to x2"),
        ("x3 > 0", "x3"),
        ("phi > 0 psi", "'psi'"),
        ("(phi > 0", ")"),
        ("phi + (psi > 0) > 1", "a condition beside plus"),
        ("phi and psi", "a number beside and"),
        ("foo(phi) > 1", "atan2"),
        ("sin(phi, psi) > 1", "2 numbers"),
        ("min(phi) > 1", "1 numbers"),
        ("phi > 1.2.3", "1.2.3"),
        ("phi # 3", "'#'"),
        ("`phi > 3", "backtick"),
    ] {
        let error = Expression::condition(text, &names(), 3).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(words), "{text}: {message}");
    }
    let deep = format!("{}phi{} > 0", "(".repeat(5000), ")".repeat(5000));
    assert!(Expression::condition(&deep, &names(), 3).is_err());
    let deep = format!("phi{} > 0", "^phi".repeat(5000));
    assert!(Expression::condition(&deep, &names(), 3).is_err());
    let long = format!("phi{} > 0", "+phi".repeat(50_000));
    assert!(Expression::condition(&long, &names(), 3).is_err());
    let many = format!("{}phi > 0", "not ".repeat(100_000));
    assert!(Expression::condition(&many, &names(), 3).is_ok());
}
