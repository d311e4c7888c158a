//! What is the same for every unit is computed once.
//!
//! Where all rows have one time, the features of particles, and all that a first layer makes of them before positions come in, do not depend on
//! the unit. Such products, and what is done to their results alone, become global nodes; tiles read copies of their rows. Two products in a row
//! with shared rows between them become one with the product of what is shared: values that are blended and then read out are read out first.
//! Graphs without shared products stay as they are.

use crate::engine::graph::{Blocks, Entry, Graph, Node, Op, Rows};

/// The graph with shared rows as global nodes, and its outputs; nothing if no product is shared.
pub(super) fn hoist(graph: &Graph, outputs: &[Node]) -> Option<(Graph, Vec<Node>)> {
    let uses = uses(graph, outputs);
    let shared = shared(graph);
    let hoisted = hoisted(graph, &shared);
    let entries = || graph.entries.iter().enumerate();
    let product = |op: Op| matches!(op, Op::MatMul { .. } | Op::Scores(_) | Op::Blend { .. });
    if !entries().any(|(id, entry)| hoisted[id] && uses[id] > 0 && product(entry.op)) {
        return None;
    }
    let mut rewriter = Rewriter {
        old: graph,
        new: graph.without_nodes(),
        uses,
        shared,
        once: vec![None; graph.entries.len()],
        map: Vec::with_capacity(graph.entries.len()),
    };
    for (id, entry) in entries() {
        if rewriter.shared[id] {
            rewriter.once[id] = Some(rewriter.once(entry));
        }
        let node = match rewriter.once[id] {
            Some(once) if hoisted[id] => rewriter.repeated(once),
            _ => rewriter
                .composed(id)
                .unwrap_or_else(|| rewriter.copied(entry)),
        };
        rewriter.map.push(node);
    }
    let outputs = outputs.iter().map(|o| rewriter.map[o.id()]).collect();
    Some((rewriter.new, outputs))
}

/// How often each node is read on the way to the outputs.
fn uses(graph: &Graph, outputs: &[Node]) -> Vec<usize> {
    let mut uses = vec![0; graph.entries.len()];
    outputs.iter().for_each(|output| uses[output.id()] += 1);
    for id in (0..graph.entries.len()).rev() {
        if uses[id] > 0 {
            for input in graph.entries[id].inputs.iter().flatten() {
                uses[input.id()] += 1;
            }
        }
    }
    uses
}

/// Rows of units that are the same for each.
fn shared(graph: &Graph) -> Vec<bool> {
    let mut shared: Vec<bool> = Vec::with_capacity(graph.entries.len());
    for entry in &graph.entries {
        let global = |x: &Node| matches!(graph.shape(*x).rows, Rows::Global(_));
        let rows_of_units = matches!(entry.shape.rows, Rows::Unit(_));
        let same = match (entry.op, entry.inputs[0]) {
            (Op::Input(_), _) => false,
            (Op::Constant(_), _) => true,
            // A table of one row.
            (Op::Lookup(_), Some(table)) => graph.shape(table).rows == Rows::Global(1),
            _ => entry
                .inputs
                .iter()
                .flatten()
                .all(|x| global(x) || shared[x.id()]),
        };
        shared.push(rows_of_units && same);
    }
    shared
}

/// Shared nodes that are worth a place of their own: what costs something, and what is done to that alone. Gathered and repeated rows are as
/// cheap where they are read.
fn hoisted(graph: &Graph, shared: &[bool]) -> Vec<bool> {
    let mut hoisted: Vec<bool> = Vec::with_capacity(graph.entries.len());
    for (id, entry) in graph.entries.iter().enumerate() {
        let of_units = |x: &&Node| matches!(graph.shape(**x).rows, Rows::Unit(_));
        let worth = match entry.op {
            Op::MatMul { .. } | Op::Scores(_) | Op::Blend { .. } => true,
            Op::Unary(_) | Op::Softmax | Op::LogSumExp | Op::RowDot | Op::RowSum => true,
            Op::Bias | Op::Add | Op::Sub | Op::Mul | Op::Affine { .. } | Op::MulColumn => {
                let mut inputs = entry.inputs.iter().flatten().filter(of_units);
                inputs.all(|x| hoisted[x.id()])
            }
            _ => false,
        };
        hoisted.push(worth && shared[id]);
    }
    hoisted
}

struct Rewriter<'a> {
    old: &'a Graph,
    new: Graph,
    uses: Vec<usize>,
    shared: Vec<bool>,
    /// The global node of each shared one.
    once: Vec<Option<Node>>,
    /// The new node of each old one.
    map: Vec<Node>,
}

impl Rewriter<'_> {
    fn copied(&mut self, entry: &Entry) -> Node {
        let inputs = entry.inputs.map(|x| x.map(|x| self.map[x.id()]));
        let (rows, cols) = (entry.shape.rows, entry.shape.cols);
        self.new.push(entry.op, inputs, rows, cols)
    }

    /// A shared node as a global one.
    fn once(&mut self, entry: &Entry) -> Node {
        let (Rows::Unit(m) | Rows::Global(m)) = entry.shape.rows;
        let inputs = entry
            .inputs
            .map(|x| x.map(|x| self.once[x.id()].unwrap_or(self.map[x.id()])));
        let op = match entry.op {
            Op::Lookup(_) => Op::BroadcastRows,
            op => op,
        };
        self.new.push(op, inputs, Rows::Global(m), entry.shape.cols)
    }

    /// Copies of global rows, for each unit.
    fn repeated(&mut self, once: Node) -> Node {
        let shape = self.new.shape(once);
        let (Rows::Unit(m) | Rows::Global(m)) = shape.rows;
        let flat = self.new.reshape(once, Rows::Global(1), m * shape.cols);
        let flat = self.new.broadcast_rows(flat, Rows::Unit(1));
        self.new.reshape(flat, Rows::Unit(m), shape.cols)
    }

    /// A blend of shared values and a product after it, or the reverse of both, as one product with what the product makes of the values.
    fn composed(&mut self, id: usize) -> Option<Node> {
        let entry = &self.old.entries[id];
        let [Some(first), Some(second)] = entry.inputs else {
            return None;
        };
        let inner = &self.old.entries[first.id()];
        if self.uses[first.id()] != 1 {
            return None;
        }
        match (entry.op, inner.op, inner.inputs) {
            (
                Op::MatMul { transposed: false },
                Op::Blend {
                    blocks,
                    transposed: false,
                },
                [Some(weights), Some(values)],
            ) => {
                let read = self.read_out(values, second, blocks)?;
                Some(self.new.matmul(self.map[weights.id()], read, false))
            }
            (Op::Scores(blocks), Op::MatMul { transposed: true }, [Some(slope), Some(matrix)]) => {
                let read = self.read_out(second, matrix, blocks)?;
                Some(self.new.matmul(self.map[slope.id()], read, true))
            }
            _ => None,
        }
    }

    /// The product of each head's rows of shared values with a matrix, if that is less work than the product of each unit's.
    fn read_out(&mut self, values: Node, matrix: Node, blocks: Blocks) -> Option<Node> {
        let once = self.once[values.id()]?;
        let shape = self.new.shape(once);
        let (one_block, fewer) = (
            shape.rows == Rows::Global(blocks.rows),
            blocks.rows * blocks.heads < shape.cols,
        );
        if !one_block || !fewer {
            return None;
        }
        let values = self.new.head_by_head(once, blocks.heads);
        Some(self.new.matmul(values, self.map[matrix.id()], false))
    }
}
