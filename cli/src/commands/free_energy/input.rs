//! Lists of numbers on the command line.

/// Numbers separated by commas.
pub fn numbers(text: &str) -> std::result::Result<Vec<f64>, String> {
    text.split(',')
        .map(|part| {
            part.trim().parse().map_err(|_| {
                format!("'{part}' is not a number; expected numbers separated by commas")
            })
        })
        .collect()
}

/// Sample counts: `500,500,0,500`, or `500x4` for four states alike.
pub fn counts(text: &str) -> std::result::Result<Vec<usize>, String> {
    let number = |part: &str| {
        part.trim().parse::<usize>().map_err(|_| {
            format!("'{part}' is not a count; expected counts separated by commas, or COUNTxSTATES")
        })
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once('x') {
            Some((count, times)) => {
                let times = number(times)?;
                if times > 1 << 20 {
                    return Err(format!("{times} states are more than this program handles"));
                }
                all.extend(std::iter::repeat_n(number(count)?, times));
            }
            None => all.push(number(part)?),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_on_the_command_line() {
        assert_eq!(counts("5,0, 7").unwrap(), [5, 0, 7]);
        assert_eq!(counts("3x2,1").unwrap(), [3, 3, 1]);
        assert!(counts("3x").is_err() && counts("-1").is_err() && counts("1x99999999").is_err());
        assert_eq!(numbers("0,0.5,1e0").unwrap(), [0.0, 0.5, 1.0]);
        assert!(numbers("0,,1").is_err());
    }
}
