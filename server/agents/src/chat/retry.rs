//! When to send again: how long to wait, and what the endpoint asks for.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use super::Limits;

/// How long to wait before try number `failed + 1`: twice as long each time, less by chance up to a half, so that those who failed
/// together don't come back together.
pub(super) fn backoff(limits: &Limits, failed: u32) -> Duration {
    let longest = limits.first_delay.saturating_mul(2_u32.saturating_pow(failed)).min(limits.longest_delay);
    longest.mul_f64(0.5 + 0.5 * fastrand::f64())
}

/// How long the endpoint asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date. A date is read by the endpoint's own
/// clock, where it says it.
pub(super) fn asked_delay(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let asked = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = asked.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
    // A date that has passed means now.
    Some(until.duration_since(now.unwrap_or_else(SystemTime::now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Option<Duration> {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
        };
        asked_delay(&headers.iter().map(pair).collect())
    }

    #[test]
    fn what_is_asked_for_is_read_in_each_form() {
        assert_eq!(asked(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(asked(&[("retry-after", " 0.5 ")]), Some(Duration::from_millis(500)));
        assert_eq!(
            asked(&[("retry-after", "7"), ("retry-after-ms", "1500")]),
            Some(Duration::from_millis(1500))
        );
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), now]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            asked(&[("retry-after", "Sunday, 06-Nov-94 08:49:40 GMT"), now]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), now]), Some(Duration::ZERO));
        for nonsense in ["soon", "-3", "NaN", "1e300", ""] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }

    #[test]
    fn each_wait_is_longer_up_to_the_longest() {
        let limits = Limits::default();
        for failed in 0..40 {
            let most =
                limits.first_delay.saturating_mul(2_u32.saturating_pow(failed)).min(limits.longest_delay);
            let wait = backoff(&limits, failed);
            assert!(wait <= most && wait >= most / 2, "{failed}: {wait:?}");
        }
    }
}
