//! Rows are dealt fairly: each once per epoch, held-out rows never; standardised on the way; systems are sampled afresh.

use super::*;
use crate::system::System;

/// 23 rows `(i, 1000 - i)`.
fn table() -> Arc<InMemory> {
    Arc::new(InMemory::new(
        (0..23)
            .flat_map(|i| [i as f32, 1000.0 - i as f32])
            .collect(),
        2,
    ))
}

fn deal(source: &dyn Source, batch: usize, steps: u64) -> Vec<usize> {
    let mut dealt = Vec::new();
    for step in 0..steps {
        for unit in 0..batch {
            let mut row = [0.0; 2];
            source.fill(step, unit, &mut row);
            assert_eq!(row[0] + row[1], 1000.0);
            // The number that an error would name.
            assert_eq!(source.row(step, unit), Some(row[0] as usize));
            dealt.push(row[0] as usize);
        }
    }
    dealt
}

#[test]
fn every_row_once_per_epoch_and_held_out_rows_never() {
    let table = table();
    let identity = Coordinates::identity(2);
    let (train, held_out) = Shuffled::split(0, table.clone(), &identity, 3, 9, 5);
    assert_eq!((train.rows(), held_out.rows()), (18, 5));
    // 18 rows in batches of 3: an epoch is 6 steps.
    let dealt = deal(&train, 3, 18);
    let epochs: Vec<Vec<usize>> = dealt
        .chunks(18)
        .map(|epoch| {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 18, "a row twice in an epoch");
            sorted
        })
        .collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]));
    assert_ne!(dealt[..18], dealt[18..36], "each epoch is shuffled anew");
    let mut kept = deal(&held_out, 5, 1);
    kept.extend(&epochs[0]);
    kept.sort_unstable();
    assert_eq!(kept, (0..23).collect::<Vec<_>>());
    // Another seed holds out other rows.
    let (other, _) = Shuffled::split(0, table.clone(), &identity, 3, 10, 5);
    let mut rows = deal(&other, 3, 6);
    rows.sort_unstable();
    assert_ne!(rows, epochs[0]);
}

/// A table with weights.
struct Weighted(Arc<dyn Table>, Vec<f64>);

impl Table for Weighted {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]) {
        self.0.copy_row(row, coordinates, out);
    }
    fn weights(&self) -> Option<&[f64]> {
        Some(&self.1)
    }
}

#[test]
fn rows_come_as_often_as_their_weights_say() {
    let weights: Vec<f64> = (0..23).map(|k| [0.5, 0.0, 3.0, 1.25][k % 4]).collect();
    let table = Arc::new(Weighted(table(), weights.clone()));
    let identity = Coordinates::identity(2);
    let (train, held_out) = Shuffled::split(0, table.clone(), &identity, 4, 9, 5);
    assert!(train.is_weighted() && held_out.is_weighted());
    for (share, batch) in [(&train, 4), (&held_out, 4)] {
        let total = share.total_weight();
        let steps = 5000;
        let dealt = deal(share, batch, steps);
        let mut counts = [0.0; 23];
        dealt.iter().for_each(|row| counts[*row] += 1.0);
        let own: Vec<usize> = (0..23).filter(|row| counts[*row] > 0.0).collect();
        assert!(own.iter().all(|row| weights[*row] > 0.0));
        let sum: f64 = own.iter().map(|row| weights[*row]).sum();
        assert!(
            (sum - total).abs() < 1e-12,
            "every row of the share that has a weight comes"
        );
        for row in own {
            let p = weights[row] / total;
            let n = batch as f64 * steps as f64;
            // Independent draws have this spread; one from each part of the weights has less.
            let sigma = (n * p * (1.0 - p)).sqrt();
            assert!(
                (counts[row] - n * p).abs() < 4.0 * sigma,
                "{row}: {}",
                counts[row]
            );
        }
    }
    // The endpoints of an interpolant are dealt independently of each other: pairs of rows are as frequent as chance has them.
    let (other, _) = Shuffled::split(1, table, &identity, 4, 9, 5);
    let pairs = deal(&train, 4, 5000).into_iter().zip(deal(&other, 4, 5000));
    let both = pairs.filter(|(a, b)| (*a < 12) && (*b < 12)).count() as f64 / 20_000.0;
    let low = |share: &Shuffled| {
        let dealt = deal(share, 4, 5000);
        dealt.iter().filter(|row| **row < 12).count() as f64 / 20_000.0
    };
    let chance = low(&train) * low(&other);
    assert!(
        (both - chance).abs() < 4.0 * (0.25_f64 / 20_000.0).sqrt(),
        "{both} {chance}"
    );
}

#[test]
fn a_batch_may_span_two_epochs() {
    let table = table();
    let (train, _) = Shuffled::split(0, table, &Coordinates::identity(2), 7, 9, 0);
    // 23 steps of 7 rows are 7 epochs of 23.
    let mut counts = [0; 23];
    deal(&train, 7, 23)
        .into_iter()
        .for_each(|row| counts[row] += 1);
    assert_eq!(counts, [7; 23]);
}

#[test]
fn rows_are_standardised_on_the_way() {
    let table = Arc::new(InMemory::new(vec![3.0, -7.0], 2));
    let coordinates = Coordinates {
        shift: vec![1.0, -2.0],
        scale: 4.0.into(),
        kinds: Vec::new(),
    };
    let (train, _) = Shuffled::split(0, table, &coordinates, 1, 0, 0);
    let mut row = [0.0; 2];
    train.fill(0, 0, &mut row);
    assert_eq!(row, [0.5, -1.25]);
}

/// Near 1e9 an f32 has steps of 64: rows in double precision are mapped before they are rounded.
#[test]
fn rows_far_from_zero_keep_their_digits() {
    let table = InMemory::new(vec![1e9 + 0.25, -7.0, 1e9 - 0.5, -8.0], 2);
    let coordinates = Coordinates {
        shift: vec![1e9, -2.0],
        scale: vec![0.5, 4.0].into(),
        kinds: Vec::new(),
    };
    let mut row = [0f32; 2];
    for (k, expected) in [[0.5, -1.25], [-1.0, -1.5]].into_iter().enumerate() {
        table.copy_row(k, &coordinates, &mut row);
        assert_eq!(row, expected);
    }
}

#[test]
fn systems_are_sampled_afresh() {
    let system = Arc::new(System::by_name("two-modes", 2, 0).unwrap());
    let coordinates = Coordinates {
        shift: vec![1.0, -2.0],
        scale: 4.0.into(),
        kinds: Vec::new(),
    };
    let plain = Resampled::new(0, system.clone(), 3, Coordinates::identity(2));
    let moved = Resampled::new(0, system, 3, coordinates);
    let row = |source: &dyn Source, step, unit| {
        let mut row = [0.0; 2];
        source.fill(step, unit, &mut row);
        row
    };
    assert_eq!(row(&plain, 2, 7), row(&plain, 2, 7));
    for (step, unit) in [(2, 8), (3, 7)] {
        assert_ne!(row(&plain, 2, 7), row(&plain, step, unit));
    }
    let (x, y) = (row(&plain, 2, 7), row(&moved, 2, 7));
    assert!((y[0] - (x[0] - 1.0) / 4.0).abs() < 1e-6 && (y[1] - (x[1] + 2.0) / 4.0).abs() < 1e-6);
}

/// Held-out rows are blocks of neighbours, one in each part of the table; both shares can be read in its order.
#[test]
fn held_out_rows_are_blocks_all_over_the_table() {
    let rows = 1003;
    let table = Arc::new(InMemory::new((0..rows).map(|i| i as f32).collect(), 1));
    let (train, held_out) = Shuffled::split(1, table, &Coordinates::identity(1), 3, 9, 50);
    let read = |share: &Shuffled| -> Vec<usize> {
        let mut row = [0.0];
        let rows = (0..share.rows()).map(|k| {
            share.copy_in_order(k, &mut row);
            row[0] as usize
        });
        rows.collect()
    };
    let (trained, kept) = (read(&train), read(&held_out));
    assert!(trained.is_sorted() && kept.is_sorted());
    let mut all = [trained, kept.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..rows).collect::<Vec<_>>());
    // Seven blocks of seven or eight rows: at most seven jumps, and each seventh of the table has rows.
    let jumps = kept
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 1)
        .count();
    assert!((1..=6).contains(&jumps), "{kept:?}");
    let parts = kept.iter().map(|row| row * 7 / rows);
    let mut counts = [0; 7];
    parts.for_each(|part| counts[part] += 1);
    assert!(
        counts.iter().all(|&count| (7..=8).contains(&count)),
        "{counts:?}"
    );
}
