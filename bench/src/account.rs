//! What an import said it did.

use std::path::Path;

use postrider::app::Account;

use crate::Fallible;

/// `READ STORED FAILED` of the JSON that `postrider --json import` printed; an account that does
/// not add up is an error.
pub(crate) fn line(file: &Path) -> Fallible<String> {
    let account: Account = serde_json::from_slice(&std::fs::read(file)?)?;
    let Account { read, stored, already_there, failed, .. } = account;
    if read != stored + already_there + failed || account.interrupted {
        return Err(format!("the account does not add up: {account:?}").into());
    }
    Ok(format!("{read} {stored} {failed}"))
}
