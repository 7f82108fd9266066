//! The progress bar on standard error; where that is no terminal, nothing.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::http::wire::JobProgress;

/// A bar for one job.
pub(super) struct Bar {
    bar: ProgressBar,
    what: &'static str,
}

impl Bar {
    /// A bar for an import: bytes, rate, estimate, messages.
    pub(super) fn import() -> Self {
        Self::new("import", "{bar:20} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta} {wide_msg}")
    }

    /// A bar for a rebuild: events, rate, estimate.
    pub(super) fn rebuild() -> Self {
        Self::new("rebuild", "{bar:20} {pos}/{len} events {per_sec} ETA {eta} {wide_msg}")
    }

    /// A bar for other work: steps, rate, estimate.
    pub(super) fn maintenance(what: &'static str) -> Self {
        Self::new(what, "{bar:20} {pos}/{len} {per_sec} ETA {eta}")
    }

    fn new(what: &'static str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        Self { bar, what }
    }

    /// Shows how far a job is.
    pub(super) fn show(&self, progress: &JobProgress) {
        match progress {
            // Nothing to say before it is known how much there is.
            JobProgress::Import { bytes_total: 0, .. }
            | JobProgress::Rebuild { events_total: 0, .. }
            | JobProgress::Maintenance { total: 0, .. } => {}
            JobProgress::Import { bytes_done, bytes_total, messages } => {
                self.bar.set_length(*bytes_total);
                self.bar.set_position(*bytes_done);
                self.bar.set_message(format!("{messages} messages"));
            }
            JobProgress::Rebuild { mailbox, events_done, events_total } => {
                self.bar.set_length(*events_total);
                self.bar.set_position(*events_done);
                self.bar.set_message(super::safe::line(mailbox));
            }
            JobProgress::Maintenance { done, total } => {
                self.bar.set_length(*total);
                self.bar.set_position(*done);
            }
        }
    }

    /// Says that the job is being stopped.
    pub(super) fn stopping(&self) {
        let note = format!("stopping the {}; once more to abort", self.what);
        self.bar.suspend(|| {
            // Without stderr there is nobody to tell.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("postrider: {note}\n").as_bytes(),
            );
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
