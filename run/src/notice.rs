//! `Notice`: what a person should know about a run that is no error.

use crate::dependence::Dependence;
use crate::words;
use crate::words::{Setting, Words};
use std::fmt::{self, Display};

/// Something odd but allowed.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// There are too few rows to hold any out unasked.
    NothingHeldOut {
        /// Rows there are.
        rows: usize,
    },
    /// The batch is all there is to train on.
    BatchLowered {
        /// Rows per step as asked for.
        from: usize,
        /// Rows there are to train on.
        to: usize,
    },
    /// Columns of whole numbers.
    Whole {
        /// Their names.
        columns: String,
    },
    /// Rows have weights.
    Weighted {
        /// Rows there are.
        rows: usize,
        /// Equally weighted rows that they are worth.
        effective: f64,
    },
    /// Rows of symbols, recognised as such.
    States {
        /// Columns.
        sites: usize,
        /// States of each.
        states: usize,
    },
    /// Columns of a kind of their own.
    Kinds {
        /// What they are, in words.
        text: String,
    },
    /// The mixture that the energy stands on.
    Base {
        /// Number and structure of its components.
        shape: String,
    },
    /// The springs that the energy stands on.
    Springs {
        /// Bonds and angles.
        held: usize,
        /// Torsions and pairs.
        soft: usize,
        /// Bonds that nothing holds at the smallest time.
        loose: usize,
    },
    /// No mixture is the shape of the data.
    Edges {
        /// Components that the best mixture has.
        components: usize,
    },
    /// The smallest time follows the data.
    SmallestTime {
        /// The time.
        t_min: f64,
        /// The noise at it, in standardised columns.
        blur: f64,
        /// The finest structure of the data, likewise.
        finest: f64,
    },
    /// Columns whose values are rounded, trained on as they are.
    Rounded {
        /// How many.
        count: usize,
        /// The first of them, counted from 0.
        first: usize,
        /// Its step.
        step: f64,
    },
    /// A column that is a function of others.
    Dependent(Dependence),
    /// Rows that stand in the data more than once.
    Repeated {
        /// Rows per distinct row.
        times: f64,
    },
    /// Columns that vary much less than the others.
    NarrowColumns {
        /// How many.
        count: usize,
        /// The first of them, counted from 0.
        first: usize,
        /// Columns of the data.
        columns: usize,
    },
}

impl Notice {
    /// The notice in words.
    pub fn words(&self) -> Words {
        match self {
            Self::Whole { columns } => words!(
                "whole numbers: ",
                columns,
                " (learned spread over their steps, and samples are rounded: ",
                Setting::new("dequantise"),
                ")"
            ),
            Self::Weighted { rows, effective } => words!(
                rows,
                format!(" weighted rows, worth {effective:.0} equally weighted ones")
            ),
            Self::NothingHeldOut { rows } => words!(
                "no rows held out: of ",
                rows,
                " rows none can be spared (choose a share with ",
                Setting::new("held_out"),
                ")"
            ),
            Self::BatchLowered { from, to } => words!(format!(
                "batch lowered from {from} to {to}: there are no more rows to train on"
            )),
            Self::States { sites, states } => words!(
                format!(
                    "whole numbers from 0 to {}: rows of {sites} sites with {states} states (",
                    states - 1
                ),
                Setting::new("states"),
                "; for rows of numbers ",
                Setting::to("states", "0"),
                ")"
            ),
            Self::Kinds { text } => words!(
                "columns: ",
                text,
                " (",
                Setting::new("periodic"),
                ", ",
                Setting::new("positive"),
                ", ",
                Setting::new("bounded"),
                ")"
            ),
            Self::Springs { held, soft, loose } => words!(
                format!(
                    "the energy stands on springs fitted to the rows: {held} bonds and angles, {soft} torsions and pairs farther apart"
                ),
                if *loose > 0 {
                    format!("; {loose} of the bonds are not held by the data")
                } else {
                    String::new()
                },
                " (",
                Setting::new("base"),
                ")"
            ),
            Self::Base { shape } => words!(
                "the energy stands on a mixture of ",
                shape,
                " components fitted to the rows (",
                Setting::new("base"),
                ")"
            ),
            Self::Edges { components } => words!(
                format!(
                    "the data have edges ({components} Gaussians are not enough for them, and kernels do better): the network sees waves of the columns (",
                ),
                Setting::to("network", "waves"),
                ") and the energy stands on one Gaussian, held down by the anchor; ",
                Setting::to("base", "mixture"),
                " takes the mixture instead"
            ),
            Self::Rounded { count, first, step } => words!(
                format!(
                    "{count} columns are rounded (first: column {first}, counted from 0, in steps of {step}): values on a grid have no density, \
                     and what is learned of them is the blur at the smallest time; spread them over their steps with "
                ),
                Setting::new("dequantise")
            ),
            Self::Dependent(dependence) => {
                let which = match dependence {
                    Dependence::Sum { column } => {
                        format!("column {column} is a sum of columns before it")
                    }
                    Dependence::Function { column, of } => {
                        format!("column {column} is a function of column {of}")
                    }
                };
                words!(
                    which,
                    " (counted from 0): the rows lie on a surface and have no density in all columns together; what is learned is the blur at the \
                     smallest time. Leave the column out, or make the blur wider with ",
                    Setting::new("t_min")
                )
            }
            Self::Repeated { times } => words!(format!(
                "each row stands in the data {times:.1} times on average: the distinct rows are what is known of the density, and errors \
                 that count every row are too small"
            )),
            Self::SmallestTime {
                t_min,
                blur,
                finest,
            } => words!(
                format!(
                    "smallest time {t_min:.2e}: the finest structure of the data has a width of {finest:.4} in standardised columns, \
                     and a blur of {blur:.5} is left in the density ("
                ),
                Setting::new("t_min"),
                ")"
            ),
            Self::NarrowColumns {
                count,
                first,
                columns,
            } => words!(format!(
                "{count} of {columns} columns (first: column {first}, counted from 0) vary a hundred times less than the average: \
                 one common scale serves all columns, so bring them to similar spreads for a better model"
            )),
        }
    }
}

impl Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}
