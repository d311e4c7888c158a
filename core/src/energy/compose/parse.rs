//! The language of compositions: `A and B`, `0.3*A or 0.7*B`, `A^0.5`, `not C`, parentheses.
//!
//! `or` binds weakest, then `and`, then `not`, then `^`. A factor `w*` is the weight of a part of an `or`; without one, parts
//! have weight 1, and weights are scaled to sum to 1.

use super::{Expression, NOT_EXPONENT};
use crate::{Error, Result};

/// Nesting beyond this is refused rather than answered by an overflow of the stack.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Number(f64),
    And,
    Or,
    Not,
    Times,
    Power,
    Open,
    Close,
}

struct Parser<'a> {
    text: &'a str,
    /// Tokens and where they begin (bytes).
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Expression> {
        let mut parser = Parser {
            text,
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
        };
        let expression = parser.or()?;
        match parser.peek() {
            None => Ok(expression),
            Some(Token::Close) => Err(parser.error("this ')' has no '('; remove it")),
            Some(Token::Times) => Err(parser.error(
                "a factor is a weight and stands before a part of an 'or', as in 0.3*A or 0.7*B; powers are A^0.5",
            )),
            Some(_) => Err(parser.error("expected 'and' or 'or' here")),
        }
    }
}

fn problem(text: &str, at: usize, problem: &str) -> Error {
    Error::Expression {
        text: text.into(),
        at: text[..at].chars().count() + 1,
        problem: problem.into(),
    }
}

fn tokens(text: &str) -> Result<Vec<(Token, usize)>> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some(&(at, c)) = rest.peek() {
        let mut word = |keep: &dyn Fn(char, char) -> bool| {
            let (mut end, mut last) = (at, ' ');
            while let Some(&(place, c)) = rest.peek() {
                if !keep(c, last) {
                    break;
                }
                (end, last) = (place + c.len_utf8(), c);
                rest.next();
            }
            &text[at..end]
        };
        let token = match c {
            c if c.is_whitespace() => {
                rest.next();
                continue;
            }
            c if c.is_alphabetic() || c == '_' => {
                let name = word(&|c, _| c.is_alphanumeric() || matches!(c, '_' | '-'));
                match name.to_lowercase().as_str() {
                    "and" => Token::And,
                    "or" => Token::Or,
                    "not" => Token::Not,
                    _ => Token::Name(name.into()),
                }
            }
            c if c.is_ascii_digit() || matches!(c, '.' | '-' | '+') => {
                let number = word(&|c, last| {
                    c.is_ascii_digit()
                        || matches!(c, '.' | 'e' | 'E')
                        || (matches!(c, '-' | '+') && matches!(last, ' ' | 'e' | 'E'))
                });
                match number.parse::<f64>() {
                    Ok(value) if value.is_finite() => Token::Number(value),
                    _ => return Err(problem(text, at, "this is not a number")),
                }
            }
            _ => {
                rest.next();
                match c {
                    '*' => Token::Times,
                    '^' => Token::Power,
                    '(' => Token::Open,
                    ')' => Token::Close,
                    _ => {
                        let message = format!(
                            "'{c}' has no meaning here; use and, or, not, *, ^ and parentheses"
                        );
                        return Err(problem(text, at, &message));
                    }
                }
            }
        };
        tokens.push((token, at));
    }
    Ok(tokens)
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    fn error(&self, message: &str) -> Error {
        let at = self
            .tokens
            .get(self.next)
            .map_or(self.text.len(), |(_, at)| *at);
        problem(self.text, at, message)
    }

    fn number(&mut self) -> Option<f64> {
        let Some(Token::Number(value)) = self.peek() else {
            return None;
        };
        let value = *value;
        self.next += 1;
        Some(value)
    }

    fn or(&mut self) -> Result<Expression> {
        let begin = self.next;
        let mut parts = Vec::new();
        let mut weighted = false;
        loop {
            let weight = self.number();
            if let Some(weight) = weight {
                if weight <= 0.0 {
                    self.next -= 1;
                    return Err(self.error("a weight must be positive"));
                }
                if !self.take(&Token::Times) {
                    return Err(self.error("expected '*' after a weight, as in 0.3*A"));
                }
                weighted = true;
            }
            parts.push((weight.unwrap_or(1.0), self.and()?));
            if !self.take(&Token::Or) {
                break;
            }
        }
        if parts.len() > 1 {
            return Ok(Expression::Or(parts));
        }
        if weighted {
            self.next = begin;
            return Err(self.error(
                "a weight belongs to a part of an 'or', as in 0.3*A or 0.7*B; a power is written A^0.3",
            ));
        }
        Ok(parts.remove(0).1)
    }

    fn and(&mut self) -> Result<Expression> {
        let mut parts = vec![self.not()?];
        while self.take(&Token::And) {
            parts.push(self.not()?);
        }
        Ok(if parts.len() > 1 {
            Expression::And(parts)
        } else {
            parts.remove(0)
        })
    }

    fn not(&mut self) -> Result<Expression> {
        if self.take(&Token::Not) {
            return Ok(self.nested(Self::not)?.not(NOT_EXPONENT));
        }
        let base = self.atom()?;
        if !self.take(&Token::Power) {
            return Ok(base);
        }
        match self.number() {
            Some(exponent) => Ok(base.power(exponent)),
            None => Err(self.error("expected a number after '^'")),
        }
    }

    fn atom(&mut self) -> Result<Expression> {
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.next += 1;
                Ok(Expression::Name(name))
            }
            Some(Token::Open) => {
                self.next += 1;
                let inner = self.nested(Self::or)?;
                if self.take(&Token::Close) {
                    Ok(inner)
                } else {
                    Err(self.error("a '(' is not closed; add ')'"))
                }
            }
            _ => Err(self.error("expected the name of a model here")),
        }
    }

    fn nested(&mut self, part: fn(&mut Self) -> Result<Expression>) -> Result<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the expression is nested too deeply; simplify it"));
        }
        let inner = part(self);
        self.depth -= 1;
        inner
    }
}

impl std::fmt::Display for Expression {
    /// As [`Expression::parse`] reads it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nested = |part: &Expression| match part {
            Expression::Name(name) => name.clone(),
            other => format!("({other})"),
        };
        match self {
            Expression::Name(name) => write!(f, "{name}"),
            Expression::And(parts) => {
                write!(
                    f,
                    "{}",
                    parts.iter().map(nested).collect::<Vec<_>>().join(" and ")
                )
            }
            Expression::Or(parts) => {
                let parts = parts
                    .iter()
                    .map(|(w, part)| format!("{w}*{}", nested(part)));
                write!(f, "{}", parts.collect::<Vec<_>>().join(" or "))
            }
            Expression::Power(part, exponent) => write!(f, "{}^{exponent}", nested(part)),
        }
    }
}
