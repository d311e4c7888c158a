//! Seeds altered at random, always the same way for the same number: bytes, texts and JSON documents.

use serde_json::Value;

/// Numbers in a fixed order (splitmix64).
pub struct Dice {
    state: u64,
}

/// Numbers that readers trip over.
const NUMBERS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "64",
    "65",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "18446744073709551615",
    "-9223372036854775808",
    "1e-323",
    "1e-30",
    "0.5",
    "1e30",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
];
/// Pieces of the languages that are read.
const PIECES: [&str; 40] = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "'",
    "\"",
    " ",
    "\n",
    "\t",
    "\0",
    "\u{1b}[2J",
    "é",
    "+",
    "*",
    "^",
    ".",
    "not ",
    " and ",
    " or ",
    "kind",
    "null",
    "true",
    "{}",
    "[]",
    "<f8",
    ">f4",
    "|O",
    "True",
    "fortran_order",
    "shape",
    "descr",
    "dsm",
    "diffclf",
    "e",
    "L",
];

impl Dice {
    /// The numbers of an input.
    pub fn new(seed: u64, name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name,
        }
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Alters bytes in one to eight places.
    pub fn bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(8) {
            let at = self.below(bytes.len());
            let end = at + self.below((bytes.len() - at).min(64) + 1);
            match self.below(8) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let copy = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
                4 => {
                    let piece = self.pick(&PIECES).as_bytes();
                    bytes.splice(at..at, piece.iter().copied());
                }
                5 => self.number(bytes),
                6 => bytes.truncate(at),
                _ => {
                    let number = self.next().to_le_bytes();
                    let width = 1 << self.below(4);
                    let end = (at + width).min(bytes.len());
                    bytes[at..end].copy_from_slice(&number[..end - at]);
                }
            }
        }
    }

    /// Puts an awkward number in the place of one that stands there in digits.
    fn number(&mut self, bytes: &mut Vec<u8>) {
        let starts: Vec<usize> = (0..bytes.len())
            .filter(|&i| bytes[i].is_ascii_digit() && (i == 0 || !bytes[i - 1].is_ascii_digit()))
            .take(400)
            .collect();
        let Some(&start) = starts.get(self.below(starts.len())) else {
            return;
        };
        let length = bytes[start..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let number = self.pick(&NUMBERS).bytes();
        bytes.splice(start..start + length, number);
    }

    /// Alters a text; what is no UTF-8 any more becomes so.
    pub fn text(&mut self, seed: &str) -> String {
        let mut bytes = seed.as_bytes().to_vec();
        self.bytes(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Alters a document in one to four places, and keeps it a document.
    pub fn json(&mut self, document: &mut Value) {
        for _ in 0..1 + self.below(4) {
            self.json_once(document, 0);
        }
    }

    fn json_once(&mut self, value: &mut Value, depth: usize) {
        // Down into a branch, mostly.
        if depth < 12 && self.below(8) > 0 {
            match value {
                Value::Object(map) if !map.is_empty() => {
                    let at = self.below(map.len());
                    if let Some(inner) = map.values_mut().nth(at) {
                        return self.json_once(inner, depth + 1);
                    }
                }
                Value::Array(list) if !list.is_empty() => {
                    let at = self.below(list.len());
                    return self.json_once(&mut list[at], depth + 1);
                }
                _ => {}
            }
        }
        let awkward: &&str = self.pick(&NUMBERS);
        let number = serde_json::from_str(awkward).unwrap_or(Value::Null);
        match value {
            Value::Object(map) => {
                let key = map.keys().nth(self.below(map.len())).cloned();
                match (self.below(3), key) {
                    (0, Some(key)) => drop(map.remove(&key)),
                    (1, Some(key)) => drop(map.insert(key, number)),
                    _ => drop(map.insert(self.pick(&PIECES).to_string(), number)),
                }
            }
            Value::Array(list) => match self.below(4) {
                0 => drop(list.pop()),
                1 => list.push(number),
                2 => list.clear(),
                _ => list.extend(list.first().cloned()),
            },
            Value::String(text) => match self.below(2) {
                0 => *text = self.text(text),
                _ => *value = number,
            },
            Value::Number(_) if self.below(4) == 0 => *value = Value::Array(vec![number]),
            _ => *value = number,
        }
    }
}
