//! Owns [`Typed`]: a physical expression together with its logical type and, for constants, its value.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use canalis_batch::arrow_type;
use canalis_types::LogicalType;
use datafusion_common::ScalarValue;
use datafusion_physical_expr::{PhysicalExpr, expressions::Literal};

use super::types::{Family, family};
use crate::{
    call::{Call, Kernel, Volatility},
    evaluate::reason,
};

/// An expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub expr: Arc<dyn PhysicalExpr>,
    pub ty: LogicalType,
    /// The value of a constant.
    pub value: Option<ScalarValue>,
    /// The bare word NULL: it takes the type of its surroundings.
    pub untyped: bool,
}

impl Typed {
    /// An expression that depends on the row.
    pub fn new(expr: Arc<dyn PhysicalExpr>, ty: LogicalType) -> Self {
        Self { expr, ty, value: None, untyped: false }
    }

    /// A constant.
    pub fn constant(value: ScalarValue, ty: LogicalType) -> Self {
        Self { expr: Arc::new(Literal::new(value.clone())), ty, value: Some(value), untyped: false }
    }

    /// A text constant.
    pub fn text(text: &str) -> Self {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX).max(1);
        Self::constant(ScalarValue::Utf8(Some(text.to_owned())), LogicalType::Varchar { length })
    }

    /// NULL of a type.
    ///
    /// # Errors
    /// The type has no NULL, which does not happen.
    pub fn null(ty: LogicalType) -> Result<Self, String> {
        let value = ScalarValue::try_from(&arrow_type(&ty)).map_err(|e| e.to_string())?;
        Ok(Self::constant(value, ty))
    }

    /// The bare word NULL.
    pub fn untyped_null() -> Self {
        let mut typed = Self::constant(ScalarValue::Utf8(None), LogicalType::Text);
        typed.untyped = true;
        typed
    }

    /// Family of the type.
    pub fn family(&self) -> Family {
        family(&self.ty)
    }

    /// Whether it is a constant that is not NULL.
    pub fn is_literal(&self) -> bool {
        self.value.as_ref().is_some_and(|v| !v.is_null())
    }

    /// Whether it is a text constant, which takes the type of what it is compared with.
    pub fn is_text_literal(&self) -> bool {
        self.is_literal() && self.family() == Family::Text
    }

    /// The text of a text constant.
    pub fn literal_text(&self) -> Option<&str> {
        match &self.value {
            Some(ScalarValue::Utf8(Some(text))) => Some(text),
            _ => None,
        }
    }

    /// The same values under another type with the same physical form.
    #[must_use]
    pub fn retyped(mut self, ty: LogicalType) -> Self {
        self.ty = ty;
        self
    }

    /// Computes an expression whose parts are constants now.
    ///
    /// # Errors
    /// The computation fails.
    pub fn folded(self) -> Result<Self, String> {
        let value = evaluate_constant(&self.expr)?;
        Ok(Self::constant(value, self.ty))
    }
}

/// A call of a kernel; computed at once when all arguments are constants.
///
/// # Errors
/// The computation fails.
pub(crate) fn call(
    name: &str,
    arguments: &[Typed],
    ty: LogicalType,
    volatility: Volatility,
    kernel: Kernel,
) -> Result<Typed, String> {
    let is_constant = volatility == Volatility::Pure && arguments.iter().all(|a| a.value.is_some());
    let call = Call {
        name: name.to_owned(),
        arguments: arguments.iter().map(|a| a.expr.clone()).collect(),
        kernel,
        data_type: arrow_type(&ty),
        volatility,
    };
    let typed = Typed::new(Arc::new(call), ty);
    if is_constant { typed.folded() } else { Ok(typed) }
}

fn evaluate_constant(expr: &Arc<dyn PhysicalExpr>) -> Result<ScalarValue, String> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(|e| e.to_string())?;
    let array: ArrayRef = expr.evaluate(&row).and_then(|v| v.into_array(1)).map_err(|e| reason(&e))?;
    ScalarValue::try_from_array(&array, 0).map_err(|e| e.to_string())
}
