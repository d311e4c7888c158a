//! What the planner knows of each node: who needs it, in which stage it is computed, what it can be merged with.

use crate::engine::graph::{Function, Graph, Node, Op, Rows};

/// What the planner knows of each node.
pub(super) struct Facts {
    pub(super) needed: Vec<bool>,
    pub(super) uses: Vec<usize>,
    /// Stage in which the node is computed, and in which it can be read.
    pub(super) computed: Vec<usize>,
    pub(super) readable: Vec<usize>,
    /// Merged into the accumulator of this node.
    pub(super) merged: Vec<Option<Node>>,
    /// Computed as an accumulating product into this node's buffer.
    pub(super) folded: Vec<Option<Node>>,
    /// Computed by its only reader, together with what that does to it.
    pub(super) joined: Vec<bool>,
    pub(super) is_output: Vec<bool>,
}

pub(super) fn is_unit(graph: &Graph, node: Node) -> bool {
    matches!(graph.shape(node).rows, Rows::Unit(_))
}

/// A reduction from rows of units to a global node.
pub(super) fn is_reduction(graph: &Graph, node: Node) -> bool {
    let entry = &graph.entries[node.id()];
    matches!(entry.op, Op::Outer | Op::SumRows | Op::Scatter(_))
        && entry.inputs[0].is_some_and(|a| is_unit(graph, a))
}

/// The node whose buffer a reshape shares.
pub(super) fn storage(graph: &Graph, mut node: Node) -> Node {
    while let (Op::Reshape, Some(inner)) = (
        graph.entries[node.id()].op,
        graph.entries[node.id()].inputs[0],
    ) {
        node = inner;
    }
    node
}

impl Facts {
    pub(super) fn new(graph: &Graph, outputs: &[Node]) -> Facts {
        let n = graph.entries.len();
        let mut facts = Facts {
            needed: vec![false; n],
            uses: vec![0; n],
            computed: vec![0; n],
            readable: vec![0; n],
            merged: vec![None; n],
            folded: vec![None; n],
            joined: vec![false; n],
            is_output: vec![false; n],
        };
        for output in outputs {
            facts.needed[output.id()] = true;
            facts.is_output[output.id()] = true;
            facts.is_output[storage(graph, *output).id()] = true;
        }
        for id in (0..n).rev() {
            if facts.needed[id] {
                for input in graph.entries[id].inputs.iter().flatten() {
                    facts.needed[input.id()] = true;
                    facts.uses[input.id()] += 1;
                }
            }
        }
        for id in 0..n {
            let stage = graph.entries[id]
                .inputs
                .iter()
                .flatten()
                .map(|i| facts.readable[i.id()])
                .max()
                .unwrap_or(0);
            facts.computed[id] = stage;
            facts.readable[id] = stage + usize::from(is_reduction(graph, Node(id as u32)));
        }
        facts.merge_sums(graph);
        facts.fold_products(graph);
        facts.join_biases(graph);
        facts
    }

    /// `bias(p, b)` with `p` a product used only here: one instruction.
    fn join_biases(&mut self, graph: &Graph) {
        for id in 0..graph.entries.len() {
            let entry = &graph.entries[id];
            let (true, Op::Bias, Some(p)) = (self.needed[id], entry.op, entry.inputs[0]) else {
                continue;
            };
            self.joined[p.id()] = is_unit(graph, p)
                && matches!(graph.entries[p.id()].op, Op::MatMul { .. })
                && self.uses[p.id()] == 1
                && !self.is_output[p.id()];
        }
    }

    /// Global `add` of two reductions of the same stage, each used only there: one accumulator for all.
    fn merge_sums(&mut self, graph: &Graph) {
        let n = graph.entries.len();
        // Is this node a reduction, or a sum of such, that can write into a shared accumulator?
        let mut sum_stage: Vec<Option<usize>> = vec![None; n];
        for id in 0..n {
            let node = Node(id as u32);
            if !self.needed[id] {
                continue;
            }
            if is_reduction(graph, node) {
                sum_stage[id] = Some(self.computed[id]);
            } else if let (Op::Add, [Some(a), Some(b)]) =
                (graph.entries[id].op, graph.entries[id].inputs)
            {
                let single = |x: Node| self.uses[x.id()] == 1 && !self.is_output[x.id()];
                if single(a)
                    && single(b)
                    && sum_stage[a.id()].is_some()
                    && sum_stage[a.id()] == sum_stage[b.id()]
                {
                    sum_stage[id] = sum_stage[a.id()];
                    self.computed[id] = sum_stage[a.id()].unwrap_or(0);
                }
            }
        }
        for id in (0..n).rev() {
            if let (true, Op::Add, Some(_)) = (self.needed[id], graph.entries[id].op, sum_stage[id])
            {
                let root = self.merged[id].unwrap_or(Node(id as u32));
                for input in graph.entries[id].inputs.iter().flatten() {
                    self.merged[input.id()] = Some(root);
                }
            }
        }
    }

    /// `add(x, p)` with `p` a product used only here, and `x` a result used only here: `p` accumulates into `x`.
    fn fold_products(&mut self, graph: &Graph) {
        for id in 0..graph.entries.len() {
            let node = Node(id as u32);
            let (Op::Add, [Some(a), Some(b)]) = (graph.entries[id].op, graph.entries[id].inputs)
            else {
                continue;
            };
            if !self.needed[id] || !is_unit(graph, node) || self.merged[id].is_some() {
                continue;
            }
            let single = |x: Node| self.uses[x.id()] == 1 && !self.is_output[x.id()];
            let product = |x: Node| {
                single(x)
                    && self.folded[x.id()].is_none()
                    && matches!(
                        graph.entries[x.id()].op,
                        Op::MatMul { .. } | Op::Lookup(_) | Op::Gather(_) | Op::MulColumn
                    )
                    && graph.entries[x.id()].shape.cols > 1
            };
            let base = |x: Node| {
                single(x)
                    && !matches!(
                        graph.entries[x.id()].op,
                        Op::Input(_)
                            | Op::Param(_)
                            | Op::Constant(_)
                            | Op::Reshape
                            | Op::Unary(Function::Silu(_) | Function::Gelu(_))
                    )
            };
            if product(b) && base(a) {
                self.folded[b.id()] = Some(a);
            } else if product(a) && base(b) {
                self.folded[a.id()] = Some(b);
            }
        }
    }
}
