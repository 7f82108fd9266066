//! Query text → typed tree.
