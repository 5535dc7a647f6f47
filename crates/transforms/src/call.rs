//! Owns [`Call`], the one physical expression that runs Canalis' own kernels (functions, casts, arithmetic) inside
//! DataFusion's expression trees.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, Datum, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;

/// Result of a kernel. An error says why a row is refused; the evaluation finds out which.
pub(crate) type Output = std::result::Result<ArrayRef, ArrowError>;

/// A kernel: arguments and number of rows to a column of that many rows.
pub(crate) type Kernel = Arc<dyn Fn(&[Argument], usize) -> Output + Send + Sync>;

/// A refusal of a row. The text does not hold the value.
pub(crate) fn refuse(why: impl Into<String>) -> ArrowError {
    ArrowError::ComputeError(why.into())
}

/// An argument: a column, or one value that stands for every row.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub array: ArrayRef,
    pub scalar: bool,
}

impl Argument {
    /// Where the value of `row` stands in the array.
    pub fn at(&self, row: usize) -> usize {
        if self.scalar { 0 } else { row }
    }

    /// Whether the value of `row` is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        self.array.is_null(self.at(row))
    }
}

impl Datum for Argument {
    fn get(&self) -> (&dyn Array, bool) {
        (&*self.array, self.scalar)
    }
}

/// How often a call has to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Volatility {
    /// Equal arguments give equal results: once for constants.
    Pure,
    /// The clock: once per batch.
    PerBatch,
    /// Random: once per row.
    PerRow,
}

/// A call of a kernel.
#[derive(Clone)]
pub(crate) struct Call {
    pub name: String,
    pub arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub kernel: Kernel,
    pub data_type: DataType,
    pub volatility: Volatility,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.arguments == other.arguments
            && Arc::ptr_eq(&self.kernel, &other.kernel)
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.arguments.hash(state);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("name", &self.name)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (index, argument) in self.arguments.iter().enumerate() {
            write!(f, "{}{argument}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl PhysicalExpr for Call {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            arguments.push(match argument.evaluate(batch)? {
                ColumnarValue::Array(array) => Argument { array, scalar: false },
                ColumnarValue::Scalar(value) => Argument { array: value.to_array()?, scalar: true },
            });
        }
        let once = self.volatility != Volatility::PerRow && arguments.iter().all(|a| a.scalar);
        if once {
            let array = (self.kernel)(&arguments, 1)?;
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array((self.kernel)(&arguments, batch.num_rows())?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.arguments.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Call { arguments: children, ..(*self).clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
