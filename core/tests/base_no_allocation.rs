//! Evaluating and drawing from a base allocates nothing: counted by a global allocator.

use std::alloc::{GlobalAlloc, Layout, System as Memory};
use std::sync::atomic::{AtomicUsize, Ordering};

use diffclf::base::{FitSettings, Level, Marginal, RowSlice, Shape, Wanted, fit};
use diffclf::engine::{Isa, Pool};
use diffclf::process::Process;
use diffclf::rng::{Purpose, Stream};

/// Counts what every thread asks for.
struct Counter;

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; counting touches only an atomic.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        unsafe { Memory.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        unsafe { Memory.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTER: Counter = Counter;

/// The only test of this file: another one on a thread of its own would be counted too.
#[test]
fn marginals_do_not_allocate() {
    let (rows, dim) = (40, 6);
    let mut values = vec![0.0; 300 * dim];
    Stream::new(1, Purpose::Test, 0, 0).fill_normal_f64(&mut values);
    let process = Process::by_name("vp").unwrap();
    for shape in [Shape::Full, Shape::Diagonal, Shape::LowRank(1)] {
        let settings = FitSettings {
            shapes: vec![shape],
            most_components: 2,
            ..FitSettings::default()
        };
        let table = RowSlice::new(&values, dim);
        let base = fit(&table, &settings, &Pool::new(1), Isa::detect()).unwrap();
        let marginal = Marginal::<f32>::new(&base.mixture, None, Isa::detect()).unwrap();
        let mut scratch = marginal.scratch();
        let levels: Vec<Level> = (0..rows)
            .map(|i| Level::at(&process, 0.02 * (i + 1) as f64))
            .collect();
        let points = vec![0.3_f32; rows * dim];
        let (mut log_density, mut score) = (vec![0.0; rows], vec![0.0; rows * dim]);
        let (mut time_score, mut laplacian) = (vec![0.0; rows], vec![0.0; rows]);
        let (mut point, mut room) = (vec![0.0; dim], vec![0.0; 2 * dim]);
        let before = REQUESTS.load(Ordering::SeqCst);
        marginal.evaluate(
            &points,
            &levels,
            Wanted {
                log_density: &mut log_density,
                score: Some(&mut score),
                time_score: Some(&mut time_score),
                laplacian: Some(&mut laplacian),
            },
            &mut scratch,
        );
        let mut stream = Stream::new(2, Purpose::Test, 0, 0);
        marginal.sample(&levels[3].inflated(1.5), &mut stream, &mut point, &mut room);
        assert_eq!(REQUESTS.load(Ordering::SeqCst) - before, 0, "{shape}");
    }
}
