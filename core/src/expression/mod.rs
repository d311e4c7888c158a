//! Expressions over the columns of a row: numbers with exact derivatives, and conditions.
//!
//! `phi > 0 and psi < 1.5`, `0.5*x0^2 + cos(2*x1)`, `-pi/2 < phi < 0`. Columns are named, or numbered from 0 as `x0`, `x1`, ...; a name
//! that is no word stands in backticks. An expression is a list of operations, each on results before it; derivatives go through the list
//! backwards.

mod parse;

use crate::{Error, Result};

/// One operation; numbers are places in the list.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Constant(f64),
    Column(usize),
    Unary(Function, usize),
    Binary(Operator, usize, usize),
    Not(usize),
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Minus,
    Sin,
    Cos,
    Tan,
    Exp,
    Log,
    Sqrt,
    Abs,
    Tanh,
    Sinh,
    Cosh,
    Asin,
    Acos,
    Atan,
}

impl Function {
    const NAMES: [(&'static str, Function); 13] = [
        ("sin", Function::Sin),
        ("cos", Function::Cos),
        ("tan", Function::Tan),
        ("exp", Function::Exp),
        ("log", Function::Log),
        ("sqrt", Function::Sqrt),
        ("abs", Function::Abs),
        ("tanh", Function::Tanh),
        ("sinh", Function::Sinh),
        ("cosh", Function::Cosh),
        ("asin", Function::Asin),
        ("acos", Function::Acos),
        ("atan", Function::Atan),
    ];

    fn value(self, x: f64) -> f64 {
        match self {
            Function::Minus => -x,
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tan => x.tan(),
            Function::Exp => x.exp(),
            Function::Log => x.ln(),
            Function::Sqrt => x.sqrt(),
            Function::Abs => x.abs(),
            Function::Tanh => x.tanh(),
            Function::Sinh => x.sinh(),
            Function::Cosh => x.cosh(),
            Function::Asin => x.asin(),
            Function::Acos => x.acos(),
            Function::Atan => x.atan(),
        }
    }

    /// Its derivative at `x`, where its value is `y`.
    fn slope(self, x: f64, y: f64) -> f64 {
        match self {
            Function::Minus => -1.0,
            Function::Sin => x.cos(),
            Function::Cos => -x.sin(),
            Function::Tan => 1.0 + y * y,
            Function::Exp => y,
            Function::Log => 1.0 / x,
            Function::Sqrt => 0.5 / y,
            Function::Abs => x.signum(),
            Function::Tanh => 1.0 - y * y,
            Function::Sinh => x.cosh(),
            Function::Cosh => x.sinh(),
            Function::Asin => 1.0 / (1.0 - x * x).sqrt(),
            Function::Acos => -1.0 / (1.0 - x * x).sqrt(),
            Function::Atan => 1.0 / (1.0 + x * x),
        }
    }
}

/// What joins two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Power,
    Min,
    Max,
    Atan2,
    Less,
    AtMost,
    Equal,
    And,
    Or,
}

impl Operator {
    fn is_comparison(self) -> bool {
        matches!(self, Operator::Less | Operator::AtMost | Operator::Equal)
    }

    fn value(self, a: f64, b: f64) -> f64 {
        let truth = |yes: bool| f64::from(u8::from(yes));
        match self {
            Operator::Plus => a + b,
            Operator::Minus => a - b,
            Operator::Times => a * b,
            Operator::Over => a / b,
            Operator::Power => a.powf(b),
            Operator::Min => a.min(b),
            Operator::Max => a.max(b),
            Operator::Atan2 => a.atan2(b),
            Operator::Less => truth(a < b),
            Operator::AtMost => truth(a <= b),
            Operator::Equal => truth(a == b),
            Operator::And => a * b,
            Operator::Or => a.max(b),
        }
    }

    /// Derivatives in both operands; `y` is the value.
    fn slopes(self, a: f64, b: f64, y: f64) -> [f64; 2] {
        match self {
            Operator::Plus => [1.0, 1.0],
            Operator::Minus => [1.0, -1.0],
            Operator::Times => [b, a],
            Operator::Over => [1.0 / b, -y / b],
            Operator::Power => {
                let base = if b == 0.0 { 0.0 } else { b * a.powf(b - 1.0) };
                // A constant exponent asks for no logarithm of a negative base.
                [base, if a > 0.0 { y * a.ln() } else { 0.0 }]
            }
            Operator::Min if a <= b => [1.0, 0.0],
            Operator::Max if a >= b => [1.0, 0.0],
            Operator::Min | Operator::Max => [0.0, 1.0],
            Operator::Atan2 => {
                let square = a * a + b * b;
                [b / square, -a / square]
            }
            _ => [0.0, 0.0],
        }
    }
}

/// See the module's text.
///
/// ```
/// use diffclf::expression::Expression;
/// let names = ["phi".to_string(), "psi".to_string()];
/// let upper = Expression::condition("phi > 0 and not psi < -1", &names, 2)?;
/// assert!(upper.holds(&[0.3, 0.0]));
/// let energy = Expression::number("2*(1 - cos(phi)) + x1^2", &names, 2)?;
/// let mut slope = [0.0; 2];
/// assert_eq!(energy.value_and_gradient(&[0.0, 3.0], &mut slope), 9.0);
/// assert_eq!(slope, [0.0, 6.0]);
/// # Ok::<(), diffclf::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    ops: Vec<Op>,
    dim: usize,
}

impl Expression {
    /// A number for rows of `dim` columns.
    pub fn number(text: &str, names: &[String], dim: usize) -> Result<Expression> {
        Self::of(text, names, dim, false)
    }

    /// A condition on rows of `dim` columns.
    pub fn condition(text: &str, names: &[String], dim: usize) -> Result<Expression> {
        Self::of(text, names, dim, true)
    }

    fn of(text: &str, names: &[String], dim: usize, condition: bool) -> Result<Expression> {
        let (ops, is_condition) = parse::parse(text, names, dim)?;
        if is_condition != condition {
            let kinds = ["a number, such as phi^2", "a condition, such as phi > 0"];
            return Err(wrong(
                text,
                kinds[usize::from(is_condition)].into(),
                kinds[usize::from(condition)].into(),
            ));
        }
        Ok(Expression {
            text: text.into(),
            ops,
            dim,
        })
    }

    /// Columns of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether a row fulfils the condition.
    pub fn holds(&self, row: &[f64]) -> bool {
        self.value(row) != 0.0
    }

    /// The number of a row; 1 or 0 for a condition.
    pub fn value(&self, row: &[f64]) -> f64 {
        let mut values = Vec::with_capacity(self.ops.len());
        self.run(row, &mut values);
        values.last().copied().unwrap_or(f64::NAN)
    }

    fn run(&self, row: &[f64], values: &mut Vec<f64>) {
        for op in &self.ops {
            values.push(match *op {
                Op::Constant(x) => x,
                Op::Column(j) => row[j],
                Op::Unary(f, a) => f.value(values[a]),
                Op::Binary(o, a, b) => o.value(values[a], values[b]),
                Op::Not(a) => 1.0 - values[a],
            });
        }
    }

    /// The number of a row and its derivatives in the columns.
    pub fn value_and_gradient(&self, row: &[f64], gradient: &mut [f64]) -> f64 {
        let mut values = Vec::with_capacity(self.ops.len());
        self.run(row, &mut values);
        let mut weights = vec![0.0; self.ops.len()];
        gradient.fill(0.0);
        let Some(last) = weights.last_mut() else {
            return f64::NAN;
        };
        *last = 1.0;
        for (k, op) in self.ops.iter().enumerate().rev() {
            let weight = weights[k];
            if weight == 0.0 {
                continue;
            }
            match *op {
                Op::Constant(_) | Op::Not(_) => {}
                Op::Column(j) => gradient[j] += weight,
                Op::Unary(f, a) => weights[a] += weight * f.slope(values[a], values[k]),
                Op::Binary(o, a, b) => {
                    let [left, right] = o.slopes(values[a], values[b], values[k]);
                    weights[a] += weight * left;
                    weights[b] += weight * right;
                }
            }
        }
        values[values.len() - 1]
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// An expression that cannot be read.
fn wrong(text: &str, found: String, expected: String) -> Error {
    Error::Formula {
        text: text.into(),
        found,
        expected,
    }
}

#[cfg(test)]
mod tests;
