//! From text to a list of operations: a parser by descent, which says what it found and what it expected.

use super::{Function, Op, Operator, wrong};
use crate::Result;

/// Deepest nesting: a hostile text must not use up the stack.
const DEEPEST: usize = 200;
/// Most operations.
const MOST_OPS: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Number(f64),
    /// A word, or a name in backticks.
    Name(&'a str, bool),
    Sign(&'static str),
}

const SIGNS: [&str; 21] = [
    "**", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "^", "<", ">", "(", ")", ",",
    "!", "&", "|", "=",
];

struct Parser<'a> {
    text: &'a str,
    names: &'a [String],
    dim: usize,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    ops: Vec<Op>,
}

/// A place in the list, and whether it is a condition.
type Part = (usize, bool);

/// The operations of a text, and whether it is a condition.
pub(super) fn parse(text: &str, names: &[String], dim: usize) -> Result<(Vec<Op>, bool)> {
    let mut parser = Parser {
        text,
        names,
        dim,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        ops: Vec::new(),
    };
    let (_, condition) = parser.either()?;
    if parser.at < parser.tokens.len() {
        return Err(parser.unexpected("an operator, or the end"));
    }
    Ok((parser.ops, condition))
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        if first.is_ascii_digit() || first == '.' {
            let mut end = 0;
            let bytes = rest.as_bytes();
            while end < bytes.len() {
                let b = bytes[end];
                let exponent =
                    end > 0 && (b == b'-' || b == b'+') && matches!(bytes[end - 1], b'e' | b'E');
                if !(b.is_ascii_digit() || b == b'.' || b == b'e' || b == b'E' || exponent) {
                    break;
                }
                end += 1;
            }
            let Ok(number) = rest[..end].parse() else {
                return Err(wrong(
                    text,
                    format!("'{}'", &rest[..end]),
                    "a number".into(),
                ));
            };
            tokens.push(Token::Number(number));
            rest = &rest[end..];
        } else if first.is_alphabetic() || first == '_' {
            let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
            tokens.push(Token::Name(&rest[..end], false));
            rest = &rest[end..];
        } else if first == '`' {
            let Some(end) = rest[1..].find('`') else {
                return Err(wrong(
                    text,
                    "a backtick that is not closed".into(),
                    "`name of a column`".into(),
                ));
            };
            tokens.push(Token::Name(&rest[1..=end], true));
            rest = &rest[end + 2..];
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            return Err(wrong(
                text,
                format!("'{first}'"),
                "numbers, columns, functions and operators".into(),
            ));
        }
    }
}

impl<'a> Parser<'a> {
    fn unexpected(&self, expected: &str) -> crate::Error {
        let found = match self.tokens.get(self.at) {
            None => "the end".into(),
            Some(Token::Number(x)) => format!("{x}"),
            Some(Token::Name(name, _)) => format!("'{name}'"),
            Some(Token::Sign(sign)) => format!("'{sign}'"),
        };
        wrong(self.text, found, expected.into())
    }

    fn push(&mut self, op: Op) -> Result<usize> {
        if self.ops.len() >= MOST_OPS {
            return Err(wrong(
                self.text,
                format!("more than {MOST_OPS} operations"),
                "a shorter expression".into(),
            ));
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    /// Takes one of these signs or words.
    fn take(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let found = match self.tokens.get(self.at)? {
            Token::Sign(sign) => wanted.iter().find(|w| *w == sign),
            Token::Name(name, false) => wanted.iter().find(|w| *w == name),
            _ => None,
        };
        found.copied().inspect(|_| self.at += 1)
    }

    fn expect(&self, part: Part, condition: bool, side: &str) -> Result<usize> {
        if part.1 == condition {
            return Ok(part.0);
        }
        let kinds = ["a number", "a condition"];
        Err(wrong(
            self.text,
            format!("{} {side}", kinds[usize::from(part.1)]),
            format!("{} there", kinds[usize::from(condition)]),
        ))
    }

    fn join(&mut self, a: Part, operator: Operator, b: Part, condition: bool) -> Result<Part> {
        let word = format!("beside {operator:?}").to_lowercase();
        let (a, b) = (
            self.expect(a, condition, &word)?,
            self.expect(b, condition, &word)?,
        );
        let is_condition = condition || operator.is_comparison();
        Ok((self.push(Op::Binary(operator, a, b))?, is_condition))
    }

    fn either(&mut self) -> Result<Part> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(wrong(
                self.text,
                format!("more than {DEEPEST} levels of parentheses"),
                "a simpler expression".into(),
            ));
        }
        let mut left = self.both()?;
        while self.take(&["or", "||", "|"]).is_some() {
            let right = self.both()?;
            left = self.join(left, Operator::Or, right, true)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Result<Part> {
        let mut left = self.not()?;
        while self.take(&["and", "&&", "&"]).is_some() {
            let right = self.not()?;
            left = self.join(left, Operator::And, right, true)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Part> {
        let mut times = 0;
        while self.take(&["not", "!"]).is_some() {
            times += 1;
        }
        let part = self.comparison()?;
        if times == 0 {
            return Ok(part);
        }
        let inner = self.expect(part, true, "after not")?;
        if times % 2 == 0 {
            return Ok((inner, true));
        }
        Ok((self.push(Op::Not(inner))?, true))
    }

    /// `a < b`, and `a < b < c` for both.
    fn comparison(&mut self) -> Result<Part> {
        let mut left = self.sum()?;
        let mut all: Option<Part> = None;
        while let Some(sign) = self.take(&["<=", ">=", "==", "!=", "<", ">", "="]) {
            let right = self.sum()?;
            let mut found = match sign {
                "<" => self.join(left, Operator::Less, right, false)?,
                "<=" => self.join(left, Operator::AtMost, right, false)?,
                ">" => self.join(right, Operator::Less, left, false)?,
                ">=" => self.join(right, Operator::AtMost, left, false)?,
                _ => self.join(left, Operator::Equal, right, false)?,
            };
            if sign == "!=" {
                found = (self.push(Op::Not(found.0))?, true);
            }
            all = Some(match all {
                None => found,
                Some(before) => self.join(before, Operator::And, found, true)?,
            });
            left = right;
        }
        Ok(all.unwrap_or(left))
    }

    fn sum(&mut self) -> Result<Part> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            let right = self.product()?;
            let operator = if sign == "+" {
                Operator::Plus
            } else {
                Operator::Minus
            };
            left = self.join(left, operator, right, false)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Part> {
        let mut left = self.signed()?;
        while let Some(sign) = self.take(&["*", "/"]) {
            let right = self.signed()?;
            let operator = if sign == "*" {
                Operator::Times
            } else {
                Operator::Over
            };
            left = self.join(left, operator, right, false)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Part> {
        let mut minus = false;
        while let Some(sign) = self.take(&["-", "+"]) {
            minus ^= sign == "-";
        }
        let part = self.power()?;
        if !minus {
            return Ok(part);
        }
        let inner = self.expect(part, false, "after -")?;
        Ok((self.push(Op::Unary(Function::Minus, inner))?, false))
    }

    /// `a^b^c` is `a^(b^c)`, and `-a^b` is `-(a^b)`.
    fn power(&mut self) -> Result<Part> {
        let base = self.atom()?;
        if self.take(&["^", "**"]).is_none() {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unexpected("fewer powers of powers"));
        }
        let exponent = self.signed()?;
        self.depth -= 1;
        self.join(base, Operator::Power, exponent, false)
    }

    fn atom(&mut self) -> Result<Part> {
        let expected = "a number, a column, a function or (";
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err(self.unexpected(expected));
        };
        match token {
            Token::Number(x) => {
                self.at += 1;
                Ok((self.push(Op::Constant(x))?, false))
            }
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.either()?;
                match self.take(&[")"]) {
                    Some(_) => Ok(inner),
                    None => Err(self.unexpected("an operator or )")),
                }
            }
            Token::Name(name, quoted) => {
                self.at += 1;
                let called = !quoted && self.tokens.get(self.at) == Some(&Token::Sign("("));
                if called {
                    return self.call(name);
                }
                self.named(name, quoted)
            }
            Token::Sign(_) => Err(self.unexpected(expected)),
        }
    }

    fn named(&mut self, name: &str, quoted: bool) -> Result<Part> {
        let numbered = || {
            let number = name.strip_prefix('x')?.parse().ok()?;
            (number < self.dim).then_some(number)
        };
        let column = self.names.iter().take(self.dim).position(|n| n == name);
        let column = column.or_else(|| if quoted { None } else { numbered() });
        let op = match (column, name) {
            (Some(j), _) => Op::Column(j),
            (None, "pi") if !quoted => Op::Constant(std::f64::consts::PI),
            (None, "inf") if !quoted => Op::Constant(f64::INFINITY),
            _ => {
                let mut known: Vec<String> = self.names.iter().take(12).cloned().collect();
                known.push(format!("x0 to x{}", self.dim.saturating_sub(1)));
                return Err(wrong(
                    self.text,
                    format!("'{name}', which is no column"),
                    format!("one of {}", known.join(", ")),
                ));
            }
        };
        Ok((self.push(op)?, false))
    }

    fn call(&mut self, name: &str) -> Result<Part> {
        let two = match name {
            "min" => Some(Operator::Min),
            "max" => Some(Operator::Max),
            "atan2" => Some(Operator::Atan2),
            _ => None,
        };
        let one = Function::NAMES.iter().find(|(known, _)| *known == name);
        if two.is_none() && one.is_none() {
            let known: Vec<&str> = Function::NAMES.iter().map(|(name, _)| *name).collect();
            return Err(wrong(
                self.text,
                format!("'{name}(', which is no function"),
                format!("one of {}, min, max, atan2", known.join(", ")),
            ));
        }
        self.at += 1;
        let mut parts = vec![self.either()?];
        while self.take(&[","]).is_some() {
            parts.push(self.either()?);
        }
        if self.take(&[")"]).is_none() {
            return Err(self.unexpected("a comma or )"));
        }
        match (one, two, parts.as_slice()) {
            (Some((_, function)), _, [part]) => {
                let inner = self.expect(*part, false, &format!("in {name}()"))?;
                Ok((self.push(Op::Unary(*function, inner))?, false))
            }
            (_, Some(operator), [a, b]) => self.join(*a, operator, *b, false),
            _ => Err(wrong(
                self.text,
                format!("{} numbers for {name}()", parts.len()),
                if two.is_some() { "two" } else { "one" }.into(),
            )),
        }
    }
}
