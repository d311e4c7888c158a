//! What the system tells this process by signals: those that the caller has set aside stay so, and data that shrink under a memory map
//! end in words.

/// A data file became shorter while it was read: a sentence and the exit code of a wrong input, not a silent death.
#[cfg(target_os = "linux")]
pub fn explain_lost_data() {
    extern "C" fn explain(_signal: libc::c_int) {
        const WORDS: &[u8] = b"\nerror: a data file became shorter, or its disk went away, while it was read; bring it back and \
            repeat the command (a training goes on with --resume)\n";
        // SAFETY: both calls are async-signal-safe, and the words are static.
        unsafe {
            libc::write(2, WORDS.as_ptr().cast(), WORDS.len());
            libc::_exit(i32::from(crate::error::EXIT_USAGE));
        }
    }
    let handler: extern "C" fn(libc::c_int) = explain;
    // SAFETY: the handler calls nothing but async-signal-safe functions and does not return. On Linux the standard library's own
    // handler watches for stack overflows, which arrive as SIGSEGV here.
    unsafe {
        libc::signal(libc::SIGBUS, handler as *const () as libc::sighandler_t);
    }
}

/// Elsewhere the system's own end has to do.
#[cfg(not(target_os = "linux"))]
pub fn explain_lost_data() {}

/// Signals that are ignored, as under `nohup` or behind `&` of a script.
#[cfg(unix)]
pub struct Ignored(Vec<libc::c_int>);

#[cfg(unix)]
impl Ignored {
    /// Those of the signals that end a program which are ignored now.
    pub fn now() -> Self {
        let ignored = |signal: &libc::c_int| {
            let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: without a new action the call only fills the old one.
            let found = unsafe { libc::sigaction(*signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: zeroes are a valid value, and the call may have overwritten them.
            found == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
        };
        Self(
            [libc::SIGHUP, libc::SIGINT, libc::SIGTERM]
                .into_iter()
                .filter(ignored)
                .collect(),
        )
    }

    /// Ignores them again.
    pub fn restore(&self) {
        for signal in &self.0 {
            // SAFETY: to ignore a signal needs no handler.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        }
    }
}

/// Elsewhere nobody sets signals aside.
#[cfg(not(unix))]
pub struct Ignored;

#[cfg(not(unix))]
impl Ignored {
    /// None.
    pub fn now() -> Self {
        Self
    }

    /// Nothing to do.
    pub fn restore(&self) {}
}
