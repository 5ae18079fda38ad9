//! Layered layout of a drawing: columns from base chains to their targets. A fixed number of iterations reduces
//! crossings and edge lengths.
//!
//! An edge over several columns has a placeholder in each of them, so that it passes between the boxes.

/// Distance between two boxes of a column.
const BOX_DISTANCE: f64 = 14.0;
/// Distance between two edges in a column.
const EDGE_DISTANCE: f64 = 7.0;
/// Distance between two columns.
const COLUMNS: f64 = 64.0;
/// Vertical offset of a back edge from the middle of its boxes, to separate it from the forward edge.
const BACK_EDGE_OFFSET: f64 = 9.0;
/// Number of iterations that sort columns and move boxes towards their neighbors.
const ROUNDS: usize = 12;
/// Maximum number of placeholders; with more, edges are straight.
const MAX_ROUTES: usize = 20_000;

/// Drawing to lay out.
pub(super) struct Drawn {
    /// Width and height of each box.
    pub(super) boxes: Vec<(f64, f64)>,
    /// Source and target of each edge.
    pub(super) edges: Vec<(usize, usize)>,
}

/// Positions of boxes and edges.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Upper left corner of each box.
    pub(super) boxes: Vec<(f64, f64)>,
    /// Points of each edge, from the right side of its source to the left side of its target; for a back edge, from
    /// left side to right side.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    /// Whether the edge is a back edge, which is part of a loop.
    pub(super) back: Vec<bool>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Position in a column, of a box or of an edge's placeholder.
struct BoxPosition {
    column: usize,
    height: f64,
    /// Vertical middle.
    y: f64,
    is_box: bool,
}

impl Drawn {
    /// Computes the layout.
    pub(super) fn layout(&self) -> Layout {
        let count = self.boxes.len();
        let back = self.against();
        let column_of = self.columns(&back);
        let mut positions: Vec<BoxPosition> = (0..count)
            .map(|number| BoxPosition {
                column: column_of[number],
                height: self.boxes[number].1,
                y: 0.0,
                is_box: true,
            })
            .collect();
        let spans = |(from, to): (usize, usize)| column_of[from].abs_diff(column_of[to]);
        let routes: usize = self.edges.iter().map(|edge| spans(*edge)).sum();
        // Positions of each edge, from left to right.
        let mut chains: Vec<Vec<usize>> = Vec::with_capacity(self.edges.len());
        for &(from, to) in &self.edges {
            let (left, right) = match column_of[from] <= column_of[to] {
                true => (from, to),
                false => (to, from),
            };
            let mut chain = vec![left];
            if routes <= MAX_ROUTES {
                for column in column_of[left] + 1..column_of[right] {
                    chain.push(positions.len());
                    positions.push(BoxPosition {
                        column,
                        height: 2.0,
                        y: 0.0,
                        is_box: false,
                    });
                }
            }
            chain.push(right);
            chains.push(chain);
        }
        let (mut before, mut behind) = (
            vec![Vec::new(); positions.len()],
            vec![Vec::new(); positions.len()],
        );
        for chain in &chains {
            for pair in chain.windows(2).filter(|pair| pair[0] != pair[1]) {
                behind[pair[0]].push(pair[1]);
                before[pair[1]].push(pair[0]);
            }
        }
        let columns = positions
            .iter()
            .map(|position| position.column + 1)
            .max()
            .unwrap_or(0);
        let mut order: Vec<Vec<usize>> = vec![Vec::new(); columns];
        for (number, position) in positions.iter().enumerate() {
            order[position.column].push(number);
        }
        for column in &order {
            stack(column, &mut positions);
        }
        for round in 0..ROUNDS {
            let forward = round % 2 == 0;
            let near = if forward { &before } else { &behind };
            let each = (0..columns).map(|at| if forward { at } else { columns - 1 - at });
            for column in each {
                for number in order[column].iter().filter(|n| !near[**n].is_empty()) {
                    let sum: f64 = near[*number].iter().map(|other| positions[*other].y).sum();
                    positions[*number].y = sum / near[*number].len() as f64;
                }
                order[column].sort_by(|a, b| positions[*a].y.total_cmp(&positions[*b].y));
                spread(&order[column], &mut positions);
            }
        }
        // Further iterations with the neighbors on both sides, without sorting.
        for _ in 0..ROUNDS {
            for column in &order {
                for number in column {
                    let near = before[*number].iter().chain(&behind[*number]);
                    let near: Vec<f64> = near.map(|other| positions[*other].y).collect();
                    if !near.is_empty() {
                        positions[*number].y = near.iter().sum::<f64>() / near.len() as f64;
                    }
                }
                spread(column, &mut positions);
            }
        }
        self.drawn(&order, &positions, chains, back)
    }

    /// Returns which edges close a loop.
    fn against(&self) -> Vec<bool> {
        let mut out = vec![Vec::new(); self.boxes.len()];
        for (number, (from, _)) in self.edges.iter().enumerate() {
            out[*from].push(number);
        }
        let mut back = vec![false; self.edges.len()];
        // 0: not visited, 1: on the current path, 2: done.
        let mut state = vec![0_u8; self.boxes.len()];
        for start in 0..self.boxes.len() {
            if state[start] != 0 {
                continue;
            }
            state[start] = 1;
            let mut path = vec![(start, 0)];
            while let Some((node, at)) = path.last_mut() {
                let node = *node;
                let Some(edge) = out[node].get(*at).copied() else {
                    state[node] = 2;
                    path.pop();
                    continue;
                };
                *at += 1;
                let to = self.edges[edge].1;
                match state[to] {
                    0 => {
                        state[to] = 1;
                        path.push((to, 0));
                    }
                    1 => back[edge] = true,
                    _ => {}
                }
            }
        }
        back
    }

    /// Returns the column of each box: to the right of all its sources.
    fn columns(&self, back: &[bool]) -> Vec<usize> {
        let count = self.boxes.len();
        let (mut out, mut into) = (vec![Vec::new(); count], vec![0_usize; count]);
        let forward = self.edges.iter().zip(back).filter(|(_, back)| !**back);
        for ((from, to), _) in forward {
            out[*from].push(*to);
            into[*to] += 1;
        }
        let mut column = vec![0; count];
        let mut ready: Vec<usize> = (0..count).filter(|number| into[*number] == 0).collect();
        let mut sorted = Vec::with_capacity(count);
        while let Some(number) = ready.pop() {
            sorted.push(number);
            for to in &out[number] {
                column[*to] = column[*to].max(column[number] + 1);
                into[*to] -= 1;
                if into[*to] == 0 {
                    ready.push(*to);
                }
            }
        }
        column
    }

    /// Computes the coordinates.
    fn drawn(
        &self,
        order: &[Vec<usize>],
        positions: &[BoxPosition],
        chains: Vec<Vec<usize>>,
        back: Vec<bool>,
    ) -> Layout {
        let edge = |position: &BoxPosition, side: f64| position.y + side * position.height / 2.0;
        let top = positions
            .iter()
            .map(|position| edge(position, -1.0))
            .fold(f64::MAX, f64::min);
        let bottom = positions
            .iter()
            .map(|position| edge(position, 1.0))
            .fold(f64::MIN, f64::max);
        let mut left = Vec::with_capacity(order.len());
        let mut widths = Vec::with_capacity(order.len());
        let mut x = 0.0;
        for column in order {
            let boxes = column.iter().filter(|number| **number < self.boxes.len());
            let width = boxes
                .map(|number| self.boxes[*number].0)
                .fold(0.0, f64::max);
            left.push(x);
            widths.push(width);
            x += width + COLUMNS;
        }
        let boxes = (0..self.boxes.len())
            .map(|number| {
                (
                    left[positions[number].column],
                    edge(&positions[number], -1.0) - top,
                )
            })
            .collect();
        let routes = chains.iter().zip(&self.edges).zip(&back);
        let routes = routes.map(|((chain, (from, to)), back)| {
            let last = chain.len() - 1;
            let mut points = Vec::with_capacity(2 * chain.len());
            for (at, number) in chain.iter().enumerate() {
                let position = &positions[*number];
                let is_back = *back && from != to && position.is_box;
                let offset = if is_back { BACK_EDGE_OFFSET } else { 0.0 };
                let (column, y) = (position.column, position.y - top + offset);
                let right = match self.boxes.get(*number) {
                    Some((width, _)) => left[column] + width,
                    None => left[column] + widths[column],
                };
                if at > 0 {
                    points.push((left[column], y));
                }
                if at < last || from == to {
                    points.push((right, y));
                }
                // Straight past wider boxes of its column.
                let end = left[column] + widths[column];
                if at < last && right < end {
                    points.push((end, y));
                }
            }
            if chain[0] != *from {
                points.reverse();
            }
            points
        });
        let routes = routes.collect();
        Layout {
            boxes,
            routes,
            back,
            width: (x - COLUMNS).max(0.0),
            height: (bottom - top).max(0.0),
        }
    }
}

/// Returns the minimum distance between the middles of two neighbors.
fn min_distance(one: &BoxPosition, other: &BoxPosition) -> f64 {
    let between = match one.is_box || other.is_box {
        true => BOX_DISTANCE,
        false => EDGE_DISTANCE,
    };
    (one.height + other.height) / 2.0 + between
}

/// Stacks the positions of a column.
fn stack(column: &[usize], positions: &mut [BoxPosition]) {
    for pair in column.windows(2) {
        positions[pair[1]].y =
            positions[pair[0]].y + min_distance(&positions[pair[0]], &positions[pair[1]]);
    }
}

/// Separates the positions of a column with small moves: to the middle between the first free position from above and
/// the one from below.
fn spread(column: &[usize], positions: &mut [BoxPosition]) {
    let wanted: Vec<f64> = column.iter().map(|number| positions[*number].y).collect();
    let (mut down, mut up) = (wanted.clone(), wanted);
    for at in 1..column.len() {
        let distance = min_distance(&positions[column[at - 1]], &positions[column[at]]);
        down[at] = down[at].max(down[at - 1] + distance);
    }
    for at in (1..column.len()).rev() {
        let distance = min_distance(&positions[column[at - 1]], &positions[column[at]]);
        up[at - 1] = up[at - 1].min(up[at] - distance);
    }
    for (at, number) in column.iter().enumerate() {
        positions[*number].y = f64::midpoint(down[at], up[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_do_not_overlap_edges_or_each_other() {
        let drawn = Drawn {
            boxes: vec![(100.0, 30.0); 7],
            edges: vec![
                (0, 1),
                (0, 2),
                (0, 3),
                (1, 4),
                (2, 4),
                (0, 4),
                (4, 5),
                (0, 5),
                (5, 1),
                (6, 6),
            ],
        };
        let layout = drawn.layout();
        for (number, (x, y)) in layout.boxes.iter().enumerate() {
            assert!(
                *x >= 0.0
                    && *y >= 0.0
                    && x + 100.0 <= layout.width
                    && y + 30.0 <= layout.height + 0.1
            );
            for (ox, oy) in &layout.boxes[..number] {
                assert!(
                    (x - ox).abs() > 100.0 || (y - oy).abs() > 30.0,
                    "{:?}",
                    layout.boxes
                );
            }
        }
        for (path, (from, to)) in layout.routes.iter().zip(&drawn.edges) {
            for (x, y) in path {
                let inside = layout.boxes.iter().enumerate().any(|(number, (bx, by))| {
                    ![*from, *to].contains(&number)
                        && *x > *bx
                        && *x < bx + 100.0
                        && *y > *by
                        && *y < by + 30.0
                });
                assert!(!inside, "{from} → {to} goes through a box");
            }
        }
        assert_eq!(layout.back.iter().filter(|back| **back).count(), 2);
        // Opposite edges are drawn separately.
        let ring = Drawn {
            boxes: vec![(100.0, 30.0); 2],
            edges: vec![(0, 1), (1, 0)],
        };
        let routes = ring.layout().routes;
        assert_eq!(routes[0].len(), routes[1].len());
        for (there, back) in routes[0].iter().zip(routes[1].iter().rev()) {
            assert!(
                there.0 == back.0 && (there.1 - back.1).abs() > 5.0,
                "{routes:?}"
            );
        }
        let none = Drawn {
            boxes: vec![],
            edges: vec![],
        }
        .layout();
        assert_eq!((none.width, none.height), (0.0, 0.0));
    }
}
