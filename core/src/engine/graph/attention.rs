//! Attention within blocks of rows, as two products head by head that are closed under differentiation: the reverse of scores blends,
//! the reverse of a blend scores.

use super::{Blocks, Graph, Node, Op, Rows, Shape};

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

    /// A global matrix with a copy of each row for each of `heads` groups of columns, zero in all others: rows of one head after the other.
    /// A product with it is one for each head.
    pub fn head_by_head(&mut self, a: Node, heads: usize) -> Node {
        let (Rows::Global(rows), cols) = (self.rows(a), self.cols(a)) else {
            unreachable!("what all units share is global")
        };
        assert!(
            heads > 0 && cols.is_multiple_of(heads),
            "{cols} columns in {heads} heads"
        );
        if heads == 1 {
            return a;
        }
        let one = |g: &mut Graph, rows: usize| g.constant(1.0, Shape::new(Rows::Global(rows), 1));
        // The ones of a unit matrix are one more than its side apart.
        let squares = heads * heads;
        let ones = one(self, heads - 1);
        let ones = self.pad(ones, 0, heads + 1);
        let ones = self.reshape(ones, Rows::Global(1), squares - 1);
        let ones = self.pad(ones, 0, squares);
        let last = one(self, 1);
        let last = self.pad(last, squares - 1, squares);
        let unit = self.add(ones, last);
        let unit = self.reshape(unit, Rows::Global(squares), 1);
        let mask = self.broadcast_columns(unit, cols / heads);
        let mask = self.reshape(mask, Rows::Global(heads), cols);
        let row = |k: usize| (k % rows) as u32;
        let head = |k: usize| (k / rows) as u32;
        let copies: Vec<u32> = (0..heads * rows).map(row).collect();
        let owners: Vec<u32> = (0..heads * rows).map(head).collect();
        let (copies, mask) = (self.gather(a, &copies), self.gather(mask, &owners));
        self.mul(copies, mask)
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
