//! Attention within blocks of rows, as two products head by head that are closed under differentiation: the reverse of scores blends,
//! the reverse of a blend scores.

use super::{Blocks, Graph, Node, Op, Rows};

impl Graph {
    /// `out[i][h, j] = sum_c a[i][h, c] b[j][h, c]`: `a` and `b` have `heads` groups of columns, the result as many groups of one
    /// column for each row of the block.
    pub fn scores(&mut self, a: Node, b: Node, blocks: Blocks) -> Node {
        assert_eq!(self.shape(a), self.shape(b), "scores need equal shapes");
        self.check_blocks(a, blocks);
        let cols = self.cols(a);
        assert_eq!(cols % blocks.heads, 0, "{cols} columns in {blocks:?}");
        let out = blocks.heads.checked_mul(blocks.rows);
        let Some(out) = out else {
            unreachable!("a block has fewer numbers than a unit")
        };
        self.push(Op::Scores(blocks), [Some(a), Some(b)], self.rows(a), out)
    }

    /// `out[i][h, c] = sum_j a[i][h, j] b[j][h, c]`, or `sum_j a[j][h, i] b[j][h, c]`.
    pub fn blend(&mut self, a: Node, b: Node, blocks: Blocks, transposed: bool) -> Node {
        assert_eq!(self.rows(a), self.rows(b), "blend needs equal rows");
        self.check_blocks(a, blocks);
        let (weights, cols) = (self.cols(a), self.cols(b));
        assert_eq!(cols % blocks.heads, 0, "{cols} columns in {blocks:?}");
        assert_eq!(
            Some(weights),
            blocks.heads.checked_mul(blocks.rows),
            "weights in {blocks:?}"
        );
        let op = Op::Blend { blocks, transposed };
        self.push(op, [Some(a), Some(b)], self.rows(a), cols)
    }

    fn check_blocks(&self, a: Node, blocks: Blocks) {
        let Rows::Unit(rows) = self.rows(a) else {
            unreachable!("blocks are rows of units")
        };
        assert!(
            blocks.rows > 0 && blocks.heads > 0 && rows.is_multiple_of(blocks.rows),
            "{rows} rows in {blocks:?}"
        );
    }
}
