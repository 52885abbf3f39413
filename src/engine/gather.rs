//! How a pipe is read with few wake-ups: a bigger pipe for big bursts, and a short nap before the next read.
//!
//! A producer that writes line by line would wake its reader for every line. After a small burst the reader therefore
//! lets more of it come together, for a time that adapts: it doubles while bursts are small against the pipe, and is
//! halved when they fill it. A fixed time would be dangerous, since a producer that fills the pipe meanwhile stands
//! still. The end of the stream and of the command are waited for all the same, so that nothing ends later.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// What a pipe has when it is made, on Linux; it may get less when its user has many.
const PIPE: usize = 64 << 10;
/// What is asked for once bursts are big. Refused for an unprivileged user who has many pipes, which does no harm.
#[cfg(target_os = "linux")]
const BIG_PIPE: i32 = 1 << 20;
/// Bursts of at least half the pipe after which a bigger one is asked for: one may be chance.
const BIG_BURSTS: u32 = 2;
const NAP_STEP: Duration = Duration::from_micros(5);
const NAP_MAX: Duration = Duration::from_millis(1);

/// Further big bursts after which a stream counts as a flood.
const FLOOD: u32 = 2;

/// Bursts that are further apart are not of one stream that a nap would gather: each is told of as it comes.
const PAUSE: Duration = Duration::from_micros(200);

/// The rhythm in which one pipe is read.
pub(crate) struct Gather {
    pipe: usize,
    last: Option<Instant>,
    /// Bytes of a burst, on a moving average: a writer whose pipe is empty half of the time does not need a nap.
    burst: usize,
    big_bursts: u32,
    nap: Duration,
}

impl Gather {
    pub(crate) fn new() -> Gather {
        Gather { pipe: PIPE, last: None, burst: 0, big_bursts: 0, nap: Duration::ZERO }
    }

    /// The pipe gave so many bytes before it was empty, or had its turn. How long to let more come together.
    pub(crate) fn after_burst(&mut self, bytes: usize, pipe: impl AsFd) -> Duration {
        self.after_burst_at(Instant::now(), bytes, pipe)
    }

    fn after_burst_at(&mut self, now: Instant, bytes: usize, pipe: impl AsFd) -> Duration {
        self.burst = (3 * self.burst + bytes) / 4;
        let apart = self.last.replace(now).is_none_or(|last| now - last > self.nap + PAUSE);
        if bytes >= self.pipe / 2 {
            self.big_bursts += 1;
            if self.big_bursts == BIG_BURSTS {
                self.grow(pipe);
            }
        }
        if apart {
            self.nap = Duration::ZERO;
        } else if self.burst >= self.pipe / 2 {
            self.nap /= 2;
        } else if self.burst < self.pipe / 8 {
            self.nap = (self.nap * 2 + NAP_STEP).min(NAP_MAX);
        }
        // A shorter one costs more than it saves.
        if self.nap > NAP_STEP {
            self.nap
        } else {
            Duration::ZERO
        }
    }

    /// Whether the pipe is a big one and was about full again and again.
    pub(crate) fn is_flooded(&self) -> bool {
        self.pipe > PIPE && self.big_bursts >= BIG_BURSTS + FLOOD
    }

    /// It is a flood only after further big bursts.
    pub(crate) fn calm_down(&mut self) {
        self.big_bursts = BIG_BURSTS;
    }

    fn grow(&mut self, pipe: impl AsFd) {
        #[cfg(target_os = "linux")]
        if let Ok(size) = nix::fcntl::fcntl(pipe, nix::fcntl::FcntlArg::F_SETPIPE_SZ(BIG_PIPE)) {
            self.pipe = size as usize;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pipe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe whose bursts come closely one after the other, by a clock that nothing can stop.
    struct Stream {
        gather: Gather,
        pipe: std::os::fd::OwnedFd,
        now: Instant,
    }

    impl Stream {
        fn new() -> Stream {
            Stream { gather: Gather::new(), pipe: crate::fd::pipe().unwrap().0, now: Instant::now() }
        }

        fn burst(&mut self, bytes: usize) -> Duration {
            self.now += self.gather.nap + PAUSE / 2;
            self.gather.after_burst_at(self.now, bytes, &self.pipe)
        }

        fn bursts(&mut self, count: usize, bytes: usize) -> Vec<Duration> {
            (0..count).map(|_| self.burst(bytes)).collect()
        }
    }

    #[test]
    fn small_bursts_lengthen_the_nap_up_to_a_limit() {
        let naps = Stream::new().bursts(14, 10);
        assert_eq!(naps[..2], [Duration::ZERO; 2], "a first line is not held up");
        assert!(naps[1..].windows(2).all(|pair| pair[0] < pair[1] || pair[1] == NAP_MAX), "{naps:?}");
        assert_eq!(naps.last(), Some(&NAP_MAX));
    }

    #[test]
    fn bursts_with_pauses_between_are_not_gathered() {
        let mut stream = Stream::new();
        stream.bursts(14, 10);
        for _ in 0..5 {
            stream.now += NAP_MAX + PAUSE;
            assert_eq!(stream.burst(10), Duration::ZERO);
        }
    }

    #[test]
    fn bursts_that_are_big_on_average_shorten_the_nap() {
        let mut stream = Stream::new();
        stream.bursts(14, 10);
        assert_eq!(stream.burst(PIPE), NAP_MAX, "one may be chance");
        let naps = stream.bursts(12, 1 << 20);
        assert!(naps.is_sorted_by(|longer, shorter| longer >= shorter), "{naps:?}");
        assert_eq!(naps.last(), Some(&Duration::ZERO));
    }

    #[test]
    fn a_writer_that_fills_its_pipe_every_other_time_is_not_kept_waiting() {
        let mut stream = Stream::new();
        stream.bursts(2, PIPE);
        for turn in 0..20 {
            assert_eq!(stream.burst(if turn % 2 == 0 { 1 << 20 } else { 4096 }), Duration::ZERO, "turn {turn}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_pipe_grows_after_the_second_big_burst_and_is_flooded_after_some_more() {
        let mut stream = Stream::new();
        let size =
            |stream: &Stream| nix::fcntl::fcntl(&stream.pipe, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap() as usize;
        stream.burst(PIPE);
        assert_eq!(size(&stream), PIPE);
        stream.burst(PIPE);
        assert_eq!(size(&stream), BIG_PIPE as usize);
        assert!(!stream.gather.is_flooded());
        stream.bursts(FLOOD as usize, BIG_PIPE as usize);
        assert!(stream.gather.is_flooded());
        stream.gather.calm_down();
        assert!(!stream.gather.is_flooded());
    }
}
