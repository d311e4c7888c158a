//! An energy written down a second time, straight from the formulas: plain loops over one point, generic over dual numbers,
//! so that derivatives come from num-dual. Beyond the list of frequencies it shares no
//! code with the graph, the columns or the schedules.

mod networks;

use num_dual::{Dual64, DualNum, HyperDual64};

use crate::base::{BaseEnds, MixtureBase, Spread, Springs};
use crate::energy::{Form, ModelSpec, frequency};
use crate::network::Layout;
use crate::process::Process;

/// A model definition with parameters in double precision.
pub(crate) struct Reference<'a> {
    spec: &'a ModelSpec,
    params: &'a [f64],
    layout: Layout,
}

/// S and sigma of a diffusion; 1 and gamma of an interpolant.
pub(crate) fn schedule<D: DualNum<Primitive = f64> + Copy>(process: &Process, time: D) -> (D, D) {
    let one = D::from(1.0);
    match process {
        Process::VariancePreserving(p) => {
            let b = time * p.beta_min + time * time * (0.5 * (p.beta_max - p.beta_min));
            ((b * -0.5).exp(), b.exp_m1().sqrt())
        }
        Process::VarianceExploding(p) => {
            let growth = (time * (2.0 * (p.sigma_max / p.sigma_min).ln())).exp_m1();
            (one, growth.sqrt() * p.sigma_min)
        }
        Process::Edm(_) => (one, time),
        Process::Linear(p) => (one, (time * (one - time)).sqrt() * p.a),
        Process::Trigonometric(p) => (one, (time * (one - time)).sqrt() * p.a),
    }
}

/// alpha, beta of `X_t = alpha x_0 + beta x_1`.
pub(crate) fn endpoints(process: &Process, time: f64) -> (f64, f64) {
    match process {
        Process::Linear(_) => (1.0 - time, time),
        Process::Trigonometric(_) => {
            let angle = 0.5 * std::f64::consts::PI * time;
            (angle.cos(), angle.sin())
        }
        _ => (schedule(process, time).0, 0.0),
    }
}

/// `a = sqrt(S^2 sd^2 + gamma^2)`.
fn input_scale<D: DualNum<Primitive = f64> + Copy>(spec: &ModelSpec, time: D) -> D {
    let (scale, sigma) = schedule(&spec.process, time);
    (scale * scale * (sigma * sigma + spec.variance)).sqrt()
}

/// Axes and variances of component `k`.
fn axes(mixture: &MixtureBase, k: usize) -> (Vec<f64>, Vec<f64>) {
    let d = mixture.dim();
    match mixture.spread() {
        Spread::Diagonal { variances, basis } => {
            let unit = (0..d * d).map(|ij| f64::from(u8::from(ij / d == ij % d)));
            let axes = basis.clone().unwrap_or_else(|| unit.collect());
            (axes, variances[k * d..][..d].to_vec())
        }
        Spread::Axes {
            axes, variances, ..
        } => (
            axes[k * d * d..][..d * d].to_vec(),
            variances[k * d..][..d].to_vec(),
        ),
    }
}

/// `log b_t(y)` of an inflated base: a sum over components, or over pairs of them, in their axes.
pub(crate) fn mixture_log_density<D: DualNum<Primitive = f64> + Copy>(
    spec: &ModelSpec,
    (base, inflation): (&BaseEnds, f64),
    time: D,
    y: &[D],
) -> D {
    let d = spec.dim;
    let (scale, sigma) = schedule(&spec.process, time);
    let angle = time * (0.5 * std::f64::consts::PI);
    let (alpha, beta) = match spec.process {
        Process::Linear(_) => (-time + 1.0, time),
        Process::Trigonometric(_) => (angle.cos(), angle.sin()),
        _ => (scale, D::from(0.0)),
    };
    let noise = scale * scale * sigma * sigma;
    let mut density = D::from(0.0);
    for k in 0..base.start.components() {
        for l in 0..base.end.as_ref().map_or(1, MixtureBase::components) {
            let (axes, variances) = axes(&base.start, k);
            let mut others = (vec![0.0; d], vec![0.0; d], 1.0);
            if let Some(end) = &base.end {
                others = (
                    end.component_mean(l).to_vec(),
                    self::axes(end, l).1,
                    end.weights()[l],
                );
            }
            let mut log = D::from((base.start.weights()[k] * others.2).ln());
            for (i, axis) in axes.chunks(d).enumerate() {
                let mut a = D::from(0.0);
                for (j, &u) in axis.iter().enumerate() {
                    let (mu, nu) = (base.start.component_mean(k)[j], others.0[j]);
                    a += (y[j] - alpha * mu - beta * nu) * u;
                }
                let v = alpha * alpha * variances[i] + beta * beta * others.1[i] + noise;
                let v = v * (inflation * inflation);
                log -= (a * a / v + (v * std::f64::consts::TAU).ln()) * 0.5;
            }
            density += log.exp();
        }
    }
    density.ln()
}

impl<'a> Reference<'a> {
    pub(crate) fn new(spec: &'a ModelSpec, params: &'a [f64]) -> Reference<'a> {
        Reference {
            spec,
            params,
            layout: spec.layout(),
        }
    }

    fn matrix(&self, name: &str) -> (&[f64], usize) {
        let entry = self.layout.get(name).expect("a parameter of that name");
        (&self.params[entry.range()], entry.cols)
    }

    /// `x W + b`, or `x W` if there is no `b` of that name.
    fn affine<D: DualNum<Primitive = f64> + Copy>(
        &self,
        x: &[D],
        w: &str,
        b: Option<&str>,
    ) -> Vec<D> {
        let (w, cols) = self.matrix(w);
        let mut out = vec![D::from(0.0); cols];
        for (j, out) in out.iter_mut().enumerate() {
            for (i, &x) in x.iter().enumerate() {
                *out += x * w[i * cols + j];
            }
            if let Some(b) = b {
                *out += self.matrix(b).0[j];
            }
        }
        out
    }

    /// Sines and cosines of the network's time coordinate.
    fn features<D: DualNum<Primitive = f64> + Copy>(&self, time: D) -> Vec<D> {
        let spec = self.spec;
        let tau = if spec.process.is_interpolant() {
            time * 2.0 - 1.0
        } else {
            let snr = |t: f64| -2.0 * schedule(&spec.process, t).1.ln();
            let n = spec.grid.levels() as f64;
            let mean = spec.grid.times().iter().map(|&t| snr(t)).sum::<f64>() / n;
            let variance = spec
                .grid
                .times()
                .iter()
                .map(|&t| (snr(t) - mean).powi(2))
                .sum::<f64>()
                / n;
            (schedule(&spec.process, time).1.ln() * -2.0 - mean) * (0.3 / variance.sqrt()) - 0.3
        };
        let half = spec.features / 2;
        let sines = (0..half).map(|k| (tau * frequency(k, half)).sin());
        let cosines = (0..half).map(|k| (tau * frequency(k, half)).cos());
        sines.chain(cosines).collect()
    }

    /// `s(t, x)`.
    fn scalar<D: DualNum<Primitive = f64> + Copy>(&self, time: D, x: &[D]) -> D {
        let dot = |a: &[D], b: &[D]| {
            a.iter()
                .zip(b)
                .fold(D::from(0.0), |sum, (&a, &b)| sum + a * b)
        };
        let vector = |name: &str| self.vector(name, time, x);
        match self.spec.form {
            Form::InnerProduct => dot(x, &vector("net")),
            Form::InnerProductPlusScalar => dot(x, &vector("net1")) + self.number("net2", time, x),
            Form::SquaredNorm => {
                let v = vector("net");
                dot(&v, &v) * -0.5
            }
            Form::ResidualSquaredNorm => {
                let v = vector("net");
                dot(x, &v) - dot(&v, &v) * 0.5
            }
            Form::Scalar => self.number("net", time, x),
        }
    }

    /// `U(t, y)` on a mixture.
    fn energy_on_base<D: DualNum<Primitive = f64> + Copy>(
        &self,
        base: &BaseEnds,
        time: D,
        y: &[D],
    ) -> D {
        let spec = self.spec;
        let (mut x, mut coupling) = (y.to_vec(), D::from(1.0));
        if !spec.process.is_interpolant() {
            let (scale, sigma) = schedule(&spec.process, time);
            for (x, &mean) in x.iter_mut().zip(&spec.mean) {
                *x = (*x - scale * mean) / input_scale(spec, time);
            }
            coupling = ((sigma * sigma / spec.variance + 1.0).sqrt()).recip();
        }
        let (d, bound) = (spec.dim as f64, 8.0 + 2.0 * spec.dim as f64);
        let square = x.iter().fold(D::from(0.0), |sum, &x| sum + x * x) / d;
        let gate = (square * square / 256.0 + 1.0).recip();
        let bounded = (self.scalar(time, &x) * coupling / bound).tanh() * bound;
        -(mixture_log_density(spec, (base, 1.0), time, y) + gate * bounded)
    }

    /// `U(t, y)`.
    pub(crate) fn energy<D: DualNum<Primitive = f64> + Copy>(&self, time: D, y: &[D]) -> D {
        let spec = self.spec;
        if let Some(base) = &spec.base {
            return self.energy_on_base(base, time, y);
        }
        let springs = match &spec.springs {
            Some(springs) => self.springs_energy(springs, time, y),
            None => D::from(0.0),
        };
        if spec.process.is_interpolant() {
            let s = self.scalar(time, y);
            let square = y.iter().fold(D::from(0.0), |sum, &y| sum + y * y);
            return springs
                + match spec.form {
                    Form::SquaredNorm => -s,
                    Form::ResidualSquaredNorm => square * 0.5 - s,
                    _ => s,
                };
        }
        let (scale, sigma) = schedule(&spec.process, time);
        let a = input_scale(spec, time);
        let x: Vec<D> = y
            .iter()
            .zip(&spec.mean)
            .map(|(&y, &m)| (y - scale * m) / a)
            .collect();
        let square = x.iter().fold(D::from(0.0), |sum, &x| sum + x * x);
        let normaliser = (a * a * std::f64::consts::TAU).ln() * (0.5 * spec.dim as f64);
        square * 0.5 + normaliser + springs - self.scalar(time, &x) / sigma * spec.variance.sqrt()
    }

    /// The energy of springs whose numbers are given at two times: between them all are straight lines, since the slope at each end is that of the one side.
    fn springs_energy<D: DualNum<Primitive = f64> + Copy>(
        &self,
        springs: &Springs,
        time: D,
        y: &[D],
    ) -> D {
        let n = self.spec.network.particles().expect("particles");
        let mut x = y.to_vec();
        if self.spec.without_centre {
            let space = y.len() / (n - 1);
            let (size, root) = (n as f64, (n as f64).sqrt());
            for axis in 0..space {
                let sum = (0..n - 1).fold(D::from(0.0), |sum, i| sum + y[i * space + axis]);
                for i in 0..n - 1 {
                    x[i * space + axis] -= sum / (size - root);
                }
                x.push(sum / root);
            }
        }
        let space = x.len() / n;
        let [from, to] = [springs.times[0], springs.times[1]];
        let share = (time - from) / (to - from);
        let line = |a: f64, b: f64| share * (b - a) + a;
        let gap = |i: u32, j: u32| -> Vec<D> {
            let [i, j] = [i, j].map(|end| end as usize * space);
            (0..space).map(|k| x[i + k] - x[j + k]).collect()
        };
        let inner = |a: &[D], b: &[D]| {
            let pairs = a.iter().zip(b);
            pairs.fold(D::from(0.0), |sum, (a, b)| sum + *a * *b)
        };
        let cross = |a: &[D], b: &[D]| -> Vec<D> {
            vec![
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
            ]
        };
        // Cosines fade where an arm is shorter than 0.16 of a bond.
        let cosine = |a: &[D], b: &[D], floor: f64| {
            inner(a, b) / ((inner(a, a) + floor) * (inner(b, b) + floor)).sqrt()
        };
        let l = springs.length;
        let mut energy = line(springs.offsets[0], springs.offsets[1]);
        for term in &springs.held {
            let [a, b] = [0, 1].map(|k| springs.springs[k][term.class as usize]);
            let value = match term.of[..] {
                [i, j] => (inner(&gap(i, j), &gap(i, j)) + 1e-8).sqrt(),
                [i, j, k] => cosine(&gap(i, j), &gap(k, j), 0.0256 * l * l),
                _ => panic!("a bond or an angle"),
            };
            let u = value - line(a.middle, b.middle);
            energy += u * line(a.slope, b.slope)
                + u * u * line(a.stiffness, b.stiffness) * 0.5
                + u * u * u * line(a.skew, b.skew) / 6.0;
        }
        for (end, numbers) in springs.leaning.iter().enumerate() {
            let mut sum = D::from(0.0);
            let torsions = springs.soft.iter().filter(|term| term.of.len() == 4);
            let classes = torsions.map(|term| term.class + 1).max().unwrap_or(0) as usize;
            for term in &springs.soft {
                let class = term.class as usize;
                match term.of[..] {
                    [i, j] => {
                        let q = inner(&gap(i, j), &gap(i, j)) / (l * l) + 1.0;
                        let of = &numbers[6 * classes + 3 * (class - classes)..];
                        let cube = (q * q * q).recip();
                        sum += q.sqrt().recip() * of[0]
                            + cube * 3.0 * of[1]
                            + cube * cube * 10.0 * of[2];
                    }
                    [i, j, k, m] => {
                        let [a, b, c] = [gap(j, i), gap(k, j), gap(m, k)];
                        let (n1, n2) = (cross(&a, &b), cross(&b, &c));
                        let floor = 0.0256 * l.powi(4);
                        let norm = ((inner(&n1, &n1) + floor) * (inner(&n2, &n2) + floor)).sqrt();
                        let (cos, sin) = (
                            inner(&n1, &n2) / norm,
                            (inner(&b, &b) + 1e-8).sqrt() * inner(&a, &n2) / norm,
                        );
                        let of = &numbers[6 * class..];
                        // As if cos^2 + sin^2 were one.
                        sum += cos * of[0] + (cos * cos * 2.0 - 1.0) * of[1];
                        sum += (cos * cos * cos * 4.0 - cos * 3.0) * of[2] + sin * of[3];
                        sum += sin * cos * 2.0 * of[4] + (sin * cos * cos * 4.0 - sin) * of[5];
                    }
                    _ => panic!("a torsion or a pair"),
                }
            }
            energy += sum * line(springs.strengths[0][end], springs.strengths[1][end]);
        }
        energy
    }

    /// `F(t)`: linear between the levels of the grid, constant beyond them.
    pub(crate) fn free_energy(&self, time: f64) -> f64 {
        let (table, _) = self.matrix("free_energy");
        let times = self.spec.grid.times();
        let last = times.len() - 1;
        if time <= times[0] {
            return table[0];
        }
        for k in 0..last {
            if time < times[k + 1] {
                let share = (time - times[k]) / (times[k + 1] - times[k]);
                return (1.0 - share) * table[k] + share * table[k + 1];
            }
        }
        table[last]
    }

    /// `dF/dt` of the cell that begins at or holds the time.
    pub(crate) fn free_energy_rate(&self, time: f64) -> f64 {
        let (table, _) = self.matrix("free_energy");
        let times = self.spec.grid.times();
        let k = (1..times.len() - 1).rev().find(|&k| times[k] <= time);
        let k = k.unwrap_or(0);
        (table[k + 1] - table[k]) / (times[k + 1] - times[k])
    }

    /// `d/dt (-U + F)`.
    pub(crate) fn time_score(&self, time: f64, y: &[f64]) -> f64 {
        self.free_energy_rate(time) - self.energy_rate(time, y)
    }

    /// `v(t, y)`.
    pub(crate) fn velocity(&self, time: f64, y: &[f64]) -> Vec<f64> {
        self.vector("velocity", time, y)
    }

    pub(crate) fn log_density(&self, time: f64, y: &[f64]) -> f64 {
        self.free_energy(time) - self.energy(time, y)
    }

    /// `-grad_y U`.
    pub(crate) fn score(&self, time: f64, y: &[f64]) -> Vec<f64> {
        (0..y.len())
            .map(|i| {
                let mut dual: Vec<Dual64> = y.iter().map(|&y| Dual64::from(y)).collect();
                dual[i].eps = 1.0;
                -self.energy(Dual64::from(time), &dual).eps
            })
            .collect()
    }

    /// `dU/dt`.
    pub(crate) fn energy_rate(&self, time: f64, y: &[f64]) -> f64 {
        let dual: Vec<Dual64> = y.iter().map(|&y| Dual64::from(y)).collect();
        self.energy(Dual64::new(time, 1.0), &dual).eps
    }

    /// `d^2 U / dy_i dy_j`.
    pub(crate) fn hessian(&self, time: f64, y: &[f64], i: usize, j: usize) -> f64 {
        let mut dual: Vec<HyperDual64> = y.iter().map(|&y| HyperDual64::from(y)).collect();
        dual[i].eps1 = 1.0;
        dual[j].eps2 = 1.0;
        self.energy(HyperDual64::from(time), &dual).eps1eps2
    }
}
