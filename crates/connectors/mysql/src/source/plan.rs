//! Owns cutting the next chunk of a table, on demand and without holding more than the last border.

use canalis_types::{Result, TableId};
use mysql_async::{Conn, Row, prelude::Queryable};

use super::{
    chunks::{Border, Chunk, ChunkKey},
    state::{Even, Plan, Stretch},
};
use crate::{catalog::Table, options::SourceOptions};

/// Cuts chunks with statements in an ordinary session: borders need no consistent view, because whatever they are, the
/// chunks between them cover every key.
pub(crate) struct Cutter<'a> {
    pub options: &'a SourceOptions,
    pub conn: &'a mut Conn,
    pub table: &'a Table,
    /// Readers of the job.
    pub readers: usize,
}

impl Cutter<'_> {
    /// The next chunk for a reader, with the plan for what is left after it; `None` when nothing is left.
    pub(crate) async fn next(
        &mut self,
        plan: &Plan,
        rows: u64,
        reader: usize,
    ) -> Result<Option<(Chunk, Plan)>> {
        let planned;
        let plan = match plan {
            Plan::Unplanned => {
                planned = self.plan(rows).await?;
                &planned
            }
            plan => plan,
        };
        match plan {
            Plan::Dealt | Plan::Unplanned => Ok(None),
            Plan::Even { next, column, even } => Ok(deal_even(*next, column, even, reader)),
            Plan::Walking { next, columns, lower } => {
                self.walk(*next, columns, lower.as_ref()).await.map(Some)
            }
        }
    }

    fn id(&self) -> &TableId {
        &self.table.schema.id
    }

    async fn plan(&mut self, rows: u64) -> Result<Plan> {
        let key = ChunkKey::choose(self.table, self.options.chunk_key(self.id()));
        let even = if key.is_integer() { self.even(&key, rows).await? } else { None };
        Ok(match (even, key.names().into_iter().next()) {
            (Some(even), Some(column)) => Plan::Even { next: 0, column, even },
            _ => Plan::Walking { next: 0, columns: key.names(), lower: None },
        })
    }

    /// Equal distances, when the range of the key is about as large as the number of rows.
    async fn even(&mut self, key: &ChunkKey, rows: u64) -> Result<Option<Even>> {
        let answer: Option<(Option<String>, Option<String>)> =
            self.conn.query_first(key.range_statement(self.id())).await.map_err(|e| {
                self.options.endpoint.error(&format!("asking for the key range of {}", self.id()), e)
            })?;
        let Some((Some(min), Some(max))) = answer else { return Ok(None) };
        let (Ok(min), Ok(max)) = (min.parse::<i128>(), max.parse::<i128>()) else { return Ok(None) };
        Ok(even_borders(min, max, rows, &Evenness::of(self.options), self.readers))
    }

    async fn walk(&mut self, next: u64, columns: &[String], lower: Option<&Border>) -> Result<(Chunk, Plan)> {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let key = ChunkKey::over(self.table, &names);
        let chunk = |upper| Chunk { number: next, columns: columns.to_vec(), lower: lower.cloned(), upper };
        if key.is_empty() {
            return Ok((chunk(None), Plan::Dealt));
        }
        let statement = key.walk_statement(self.id(), lower, self.options.chunk_size);
        let row: Option<Row> = self
            .conn
            .query_first(statement)
            .await
            .map_err(|e| self.options.endpoint.error(&format!("cutting {} into chunks", self.id()), e))?;
        let Some(mut row) = row else { return Ok((chunk(None), Plan::Dealt)) };
        let texts: Option<Vec<String>> =
            (0..columns.len()).map(|i| row.take::<Option<String>, _>(i)?).collect();
        // Not reached: the walk leaves out NULL.
        let Some(texts) = texts else { return Ok((chunk(None), Plan::Dealt)) };
        let upper = key.border(&texts);
        let rest = Plan::Walking { next: next + 1, columns: columns.to_vec(), lower: Some(upper.clone()) };
        Ok((chunk(Some(upper)), rest))
    }
}

/// The next chunk of the reader's own stretch, or of the one with the most left when that has ended.
fn deal_even(next: u64, column: &str, even: &Even, reader: usize) -> Option<(Chunk, Plan)> {
    let left = |stretch: &Stretch| stretch.end - stretch.dealt;
    let own = reader % even.stretches.len().max(1);
    let at = match even.stretches.get(own) {
        Some(stretch) if left(stretch) > 0 => own,
        _ => (0..even.stretches.len()).max_by_key(|at| left(&even.stretches[*at]))?,
    };
    let Stretch { dealt, end } = even.stretches[at];
    if dealt >= end {
        return None;
    }
    let upper = (dealt + even.step).min(end);
    let border = |key: i128| vec![key.to_string()];
    let chunk = Chunk {
        number: next,
        columns: vec![column.to_owned()],
        lower: (dealt >= even.min).then(|| border(dealt)),
        upper: (upper < even.max).then(|| border(upper)),
    };
    let mut rest = even.clone();
    rest.stretches[at].dealt = upper;
    let plan = if rest.stretches.iter().all(|stretch| left(stretch) == 0) {
        Plan::Dealt
    } else {
        Plan::Even { next: next + 1, column: column.to_owned(), even: rest }
    };
    Some((chunk, plan))
}

/// How large chunks are, and how large the range of a key may be beside the number of rows, in thousandths.
struct Evenness {
    chunk_size: u64,
    least_permille: i128,
    most_permille: i128,
}

impl Evenness {
    fn of(options: &SourceOptions) -> Self {
        // Text is the way from a float to a number of 128 bits that needs no cast.
        let permille =
            |factor: f64| format!("{:.0}", (factor * 1000.0).min(1e30)).parse().unwrap_or(i128::MAX);
        Self {
            chunk_size: options.chunk_size,
            least_permille: permille(options.even_lower),
            most_permille: permille(options.even_upper),
        }
    }
}

/// Borders by arithmetic, or none when the key is sparse or skewed, so that the rows have to be walked.
fn even_borders(min: i128, max: i128, rows: u64, evenness: &Evenness, readers: usize) -> Option<Even> {
    let size = i128::from(evenness.chunk_size);
    let span = max - min + 1;
    let mut step = size;
    // One chunk needs no evenness, whatever the estimate says.
    if span > size {
        if rows == 0 {
            return None;
        }
        // Thousandths are exact enough to compare and to stretch the distance with.
        let permille = span.checked_mul(1000)? / i128::from(rows);
        if permille < evenness.least_permille || permille > evenness.most_permille {
            return None;
        }
        step = (size * permille / 1000).max(size);
    }
    let chunks = (span + step - 1) / step;
    let count = i128::try_from(readers).ok()?.clamp(1, chunks);
    // The last key of the first `chunks * index / count` chunks.
    let end = |index: i128| (min - 1 + chunks * index / count * step).min(max);
    let stretches = (0..count).map(|i| Stretch { dealt: end(i), end: end(i + 1) }).collect();
    Some(Even { min, max, step, stretches })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evenness() -> Evenness {
        Evenness { chunk_size: 100, least_permille: 50, most_permille: 10_000 }
    }

    #[test]
    fn ky_08_only_even_keys_are_cut_by_arithmetic() {
        let max_unsigned = i128::from(u64::MAX);
        for (min, max, rows, expect) in [
            // Dense: the first border closes a hundred rows.
            (1, 1000, 1000, Some(100)),
            (-500, 499, 1000, Some(100)),
            // Every other number: twice the distance.
            (0, 1998, 1000, Some(199)),
            // One chunk, whatever the estimate says.
            (1, 100, 0, Some(100)),
            (7, 7, 5_000_000, Some(100)),
            // Sparse, or nothing known: walked.
            (1, 9_000_000_000_000_000_000, 1001, None),
            (0, max_unsigned, 4, None),
            (1, 1000, 0, None),
            (1, 1000, 1_000_000, None),
            // Unsigned to the last number.
            (max_unsigned - 999, max_unsigned, 1000, Some(100)),
        ] {
            let got = even_borders(min, max, rows, &evenness(), 2).map(|even| even.step);
            assert_eq!(got, expect, "{min}..{max} with {rows} rows");
        }
    }

    /// Chunks in the order in which the readers, asking in turn, get them.
    fn dealt(min: i128, max: i128, rows: u64, readers: usize) -> Vec<(usize, Chunk)> {
        let mut plan = Plan::Even {
            next: 0,
            column: "id".into(),
            even: even_borders(min, max, rows, &evenness(), readers).unwrap(),
        };
        let mut chunks = Vec::new();
        while let Plan::Even { next, column, even } = plan {
            let reader = chunks.len() % readers;
            let (chunk, rest) = deal_even(next, &column, &even, reader).unwrap();
            chunks.push((reader, chunk));
            plan = rest;
        }
        assert_eq!(plan, Plan::Dealt);
        chunks
    }

    fn key(border: Option<&Border>) -> Option<i128> {
        border.map(|texts| texts[0].parse().unwrap())
    }

    #[test]
    fn even_chunks_cover_every_key_once_whatever_the_number_of_readers() {
        for (min, max, rows) in [(1, 1000, 1000), (-450, 601, 1052), (7, 7, 1), (1, 101, 101), (5, 999, 800)]
        {
            for readers in 1..=7 {
                let mut borders: Vec<(Option<i128>, Option<i128>)> = dealt(min, max, rows, readers)
                    .iter()
                    .map(|(_, chunk)| (key(chunk.lower.as_ref()), key(chunk.upper.as_ref())))
                    .collect();
                borders.sort();
                assert_eq!(borders.first().unwrap().0, None, "open below");
                assert_eq!(borders.iter().filter(|(_, upper)| upper.is_none()).count(), 1);
                assert_eq!(borders.last().unwrap().1, None, "open above");
                for pair in borders.windows(2) {
                    assert_eq!(pair[0].1, pair[1].0, "{min}..{max} for {readers} readers");
                }
            }
        }
    }

    #[test]
    fn each_reader_has_its_own_stretch_of_an_even_key() {
        let chunks = dealt(1, 1000, 1000, 2);
        let lowers = |reader| -> Vec<Option<i128>> {
            chunks.iter().filter(|(r, _)| *r == reader).map(|(_, c)| key(c.lower.as_ref())).collect()
        };
        assert_eq!(lowers(0), [None, Some(100), Some(200), Some(300), Some(400)]);
        assert_eq!(lowers(1), [Some(500), Some(600), Some(700), Some(800), Some(900)]);
    }

    #[test]
    fn a_reader_whose_stretch_has_ended_helps_where_most_is_left() {
        let even = even_borders(1, 1000, 1000, &evenness(), 2).unwrap();
        let mut plan = Plan::Even { next: 0, column: "id".into(), even };
        let mut lowers = Vec::new();
        while let Plan::Even { next, column, even } = plan {
            let (chunk, rest) = deal_even(next, &column, &even, 1).unwrap();
            lowers.push(key(chunk.lower.as_ref()));
            plan = rest;
        }
        let expect = [
            Some(500),
            Some(600),
            Some(700),
            Some(800),
            Some(900),
            None,
            Some(100),
            Some(200),
            Some(300),
            Some(400),
        ];
        assert_eq!(lowers, expect);
    }
}
