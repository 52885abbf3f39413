//! What a credential looks like: by the name of its variable, or by the shape of its value.
//!
//! A miss shows a secret to a model, a false alarm takes a variable from a command, and `env_allow` undoes the second
//! but not the first. So the shapes are generous where a harmless value is unlikely. All scans are linear in the value:
//! no byte belongs to more than one candidate of a shape.

use std::ops::RangeInclusive;

const WORDS: [&[u8]; 11] = [
    b"KEY",
    b"KEYS",
    b"PASSWORD",
    b"PASSWD",
    b"PASSPHRASE",
    b"SECRET",
    b"SECRETS",
    b"TOKEN",
    b"TOKENS",
    b"CREDENTIAL",
    b"CREDENTIALS",
];

/// A proxy with a password is how some networks are reached at all: without it no command could download anything.
const PROXIES: [&[u8]; 5] = [b"http_proxy", b"https_proxy", b"all_proxy", b"ftp_proxy", b"no_proxy"];

/// Whether the variable is credential-shaped, by its name or by its value.
pub(super) fn is_credential(name: &[u8], value: &[u8]) -> bool {
    let proxy = PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy));
    named_like_one(name) || (!proxy && shaped_like_one(value))
}

fn named_like_one(name: &[u8]) -> bool {
    let ends_with = |word: &[u8], end: &[u8]| {
        word.len().checked_sub(end.len()).is_some_and(|start| word[start..].eq_ignore_ascii_case(end))
    };
    name.split(|&byte| byte == b'_').any(|word| WORDS.iter().any(|end| ends_with(word, end)))
}

fn shaped_like_one(value: &[u8]) -> bool {
    has_url_with_password(value) || has_private_key(value) || has_token(value)
}

/// Whether `scheme://user:password@host` is anywhere in the value. The user may be empty, the password may not.
fn has_url_with_password(value: &[u8]) -> bool {
    const MARK: &[u8] = b"://";
    // Real passwords hold `?`, `#` and `,` unescaped, and drivers take them: only what ends a URL for everybody ends it.
    let ends = |byte: &u8| matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | 0..=b' ' | 0x7f);
    let schemed =
        |at: usize| at > 0 && matches!(value[at - 1], b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z');
    positions(value, MARK).filter(|&at| schemed(at)).any(|at| {
        let rest = &value[at + MARK.len()..];
        let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
        // The last '@': a user may be a mail address.
        let Some(end) = authority.iter().rposition(|&byte| byte == b'@') else { return false };
        authority[..end].iter().position(|&byte| byte == b':').is_some_and(|colon| colon + 1 < end)
    })
}

/// Whether a PEM or PGP header of a private key is anywhere in the value (JSON of service accounts embeds them).
fn has_private_key(value: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    positions(value, BEGIN).any(|at| {
        let rest = &value[at + BEGIN.len()..];
        let label = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b' ');
        let (label, rest) = rest.split_at(rest.iter().position(|byte| !label(byte)).unwrap_or(rest.len()));
        (label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK")) && rest.starts_with(b"-----")
    })
}

fn positions<'a>(value: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let found = move |&(at, byte): &(usize, &u8)| *byte == mark[0] && value[at..].starts_with(mark);
    value.iter().enumerate().filter(found).map(|(at, _)| at)
}

#[derive(Clone, Copy)]
enum Of {
    Hex,
    Upper,
    Alnum,
    /// The alphabet of base64url.
    Word,
    /// `Word` in parts between dots.
    Dotted,
}

impl Of {
    fn has(self, byte: u8) -> bool {
        match self {
            Of::Hex => byte.is_ascii_hexdigit(),
            Of::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Of::Alnum => byte.is_ascii_alphanumeric(),
            Of::Word => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            Of::Dotted => byte == b'.' || Of::Word.has(byte),
        }
    }
}

const ANY: usize = usize::MAX;

/// Prefixes of tokens, what they are made of after it, and how long that is.
///
/// The prefixes and alphabets are the ones that issuers document and that public secret scanners such as gitleaks look
/// for. Lengths are lower than the real ones where the prefix alone says enough: issuers change them.
#[rustfmt::skip]
static TOKENS: &[(&[u8], Of, RangeInclusive<usize>)] = &[
    // Code hosts and package registries.
    (b"ghp_", Of::Alnum, 20..=ANY), (b"gho_", Of::Alnum, 20..=ANY), (b"ghu_", Of::Alnum, 20..=ANY),
    (b"ghs_", Of::Word, 20..=ANY), (b"ghr_", Of::Alnum, 20..=ANY), (b"github_pat_", Of::Word, 20..=ANY),
    (b"glpat-", Of::Word, 20..=ANY), (b"gldt-", Of::Word, 20..=ANY), (b"glrt-", Of::Word, 20..=ANY),
    (b"glcbt-", Of::Word, 20..=ANY), (b"glptt-", Of::Word, 20..=ANY), (b"gloas-", Of::Word, 20..=ANY),
    (b"glsoat-", Of::Word, 20..=ANY), (b"npm_", Of::Alnum, 36..=ANY), (b"pypi-", Of::Word, 50..=ANY),
    (b"rubygems_", Of::Hex, 48..=ANY), (b"dckr_pat_", Of::Word, 20..=ANY), (b"ATATT3", Of::Word, 50..=ANY),
    // Models.
    (b"sk-", Of::Word, 20..=ANY), (b"hf_", Of::Alnum, 30..=ANY), (b"gsk_", Of::Alnum, 40..=ANY),
    (b"xai-", Of::Alnum, 40..=ANY), (b"pplx-", Of::Alnum, 40..=ANY), (b"r8_", Of::Alnum, 37..=ANY),
    (b"nvapi-", Of::Word, 40..=ANY), (b"tvly-", Of::Word, 20..=ANY), (b"lsv2_", Of::Word, 40..=ANY),
    // Clouds. A key's id that is longer than 16 is a word: ASIA begins many.
    (b"AKIA", Of::Upper, 16..=16), (b"ASIA", Of::Upper, 16..=16), (b"AIza", Of::Word, 35..=ANY),
    (b"GOCSPX-", Of::Word, 20..=ANY), (b"ya29.", Of::Word, 20..=ANY), (b"LTAI", Of::Alnum, 20..=20),
    (b"dapi", Of::Hex, 32..=ANY), (b"dop_v1_", Of::Hex, 32..=ANY), (b"doo_v1_", Of::Hex, 32..=ANY),
    (b"dor_v1_", Of::Hex, 32..=ANY), (b"hvs.", Of::Word, 20..=ANY), (b"hvb.", Of::Word, 20..=ANY),
    (b"fo1_", Of::Word, 40..=ANY), (b"pul-", Of::Hex, 40..=ANY), (b"dp.pt.", Of::Alnum, 30..=ANY),
    (b"sbp_", Of::Hex, 40..=ANY), (b"tskey-", Of::Word, 20..=ANY),
    // Messages, payments, shops, desks.
    (b"xoxa-", Of::Word, 20..=ANY), (b"xoxb-", Of::Word, 20..=ANY), (b"xoxe-", Of::Word, 20..=ANY),
    (b"xoxo-", Of::Word, 20..=ANY), (b"xoxp-", Of::Word, 20..=ANY), (b"xoxr-", Of::Word, 20..=ANY),
    (b"xoxs-", Of::Word, 20..=ANY), (b"xoxe.xox", Of::Word, 20..=ANY), (b"xapp-", Of::Word, 20..=ANY),
    (b"SG.", Of::Dotted, 50..=ANY), (b"sk_live_", Of::Alnum, 10..=ANY), (b"sk_test_", Of::Alnum, 10..=ANY),
    (b"rk_live_", Of::Alnum, 10..=ANY), (b"rk_test_", Of::Alnum, 10..=ANY), (b"shpat_", Of::Hex, 32..=ANY),
    (b"shpca_", Of::Hex, 32..=ANY), (b"shppa_", Of::Hex, 32..=ANY), (b"shpss_", Of::Hex, 32..=ANY),
    (b"sntrys_", Of::Word, 40..=ANY), (b"sntryu_", Of::Hex, 40..=ANY), (b"glsa_", Of::Word, 32..=ANY),
    (b"lin_api_", Of::Alnum, 32..=ANY), (b"ntn_", Of::Alnum, 40..=ANY), (b"PMAK-", Of::Word, 40..=ANY),
];

/// Whether a token of a well-known kind is at the start of the value or after a delimiter.
fn has_token(value: &[u8]) -> bool {
    // Below a URL's "//" is the user, which may be the token; below other slashes are names of files.
    let starts = |at: usize| match value[at - 1] {
        b'=' | b':' | b',' | b';' | b'"' | b'\'' | b'`' | b'\t'..=b'\r' | b' ' => true,
        b'/' => value[..at].ends_with(b"://"),
        _ => false,
    };
    (0..value.len()).filter(|&at| at == 0 || starts(at)).any(|at| {
        let rest = &value[at..];
        FIRST[rest[0] as usize]
            && (is_jwt(rest) || TOKENS.iter().any(|(prefix, of, length)| begins_token(rest, prefix, *of, length)))
    })
}

/// The bytes that a token can begin with. Values such as LS_COLORS hold hundreds of places where one could.
static FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut i = 0;
    while i < TOKENS.len() {
        first[TOKENS[i].0[0] as usize] = true;
        i += 1;
    }
    first[b'e' as usize] = true; // JWT
    first
};

fn begins_token(rest: &[u8], prefix: &[u8], of: Of, length: &RangeInclusive<usize>) -> bool {
    let Some(rest) = rest.strip_prefix(prefix) else { return false };
    let token = run(rest, of);
    // Lower-case words are a name ("sk-learn-example-notebooks"), however long it is.
    let is_word = |part: &[u8]| part.len() < 16 && part.iter().all(u8::is_ascii_lowercase);
    length.contains(&token.len()) && !token.split(|byte| matches!(byte, b'-' | b'_' | b'.')).all(is_word)
}

/// Whether a signed JSON Web Token begins here: three parts in base64url, of which two are JSON objects (`{"`).
fn is_jwt(rest: &[u8]) -> bool {
    let mut parts = run(rest, Of::Dotted).split(|&byte| byte == b'.');
    let object = |part: Option<&[u8]>| part.is_some_and(|part| part.starts_with(b"eyJ") && part.len() >= 8);
    object(parts.next()) && object(parts.next()) && parts.next().is_some_and(|signature| signature.len() >= 16)
}

fn run(rest: &[u8], of: Of) -> &[u8] {
    &rest[..rest.iter().position(|&byte| !of.has(byte)).unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shaped(value: &str) -> bool {
        shaped_like_one(value.as_bytes())
    }

    #[test]
    fn a_word_of_the_name_that_ends_like_a_credential_makes_it_one() {
        for name in [
            "MY_APIKEY",
            "FOO_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "github_token",
            "Db_Password",
            "PGPASSWORD",
            "KEY",
            "SSH_KEY_PATH",
            "MAX_TOKENS",
            "PASSWORD_STORE_DIR",
            "GPG_PASSPHRASE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "APP_SECRETS",
            "MYSQL_PASSWD",
            "__KEYS__",
        ] {
            assert!(named_like_one(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_name_that_only_begins_like_a_credential_stays() {
        for name in [
            "KEYBOARD_LAYOUT",
            "TOKENIZERS_PARALLELISM",
            "SSH_AUTH_SOCK",
            "GNOME_KEYRING_CONTROL",
            "SECRETARY",
            "PATH",
            "HOME",
            "",
            "_",
        ] {
            assert!(!named_like_one(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_url_with_a_password_is_a_credential_anywhere_in_the_value() {
        for value in [
            "scheme://u:pw@h",
            "postgres://app:s3cret@db:5432/app?sslmode=require",
            "redis://:pw@cache:6379/0",
            "--index https://index.example/simple --extra-index-url https://u:p@host/simple",
            "http://plain.example:80/x,amqp://u:p@mq",
            "https://me@mail.example:pw@host",
            "mongodb+srv://u:p#w?x,y@h",
            r#"{"dsn":"mysql://u:p@h"}"#,
        ] {
            assert!(has_url_with_password(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_url_without_a_password_is_none() {
        for value in [
            "https://example.com:8080/path@2",
            "ssh://git@github.com/a/b",
            "https://user:@host",
            "http://a:1,http://b:2",
            "http://a:80 x:y@z",
            "://u:p@h",
            "http:/u:p@h",
            "user:pw@host",
            "http://u@[::1]:80/",
            "unix:path=/run/user/1000/bus",
            "://",
            "x://:@",
        ] {
            assert!(!has_url_with_password(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_private_key_is_a_credential_anywhere_in_the_value() {
        assert!(shaped("-----BEGIN PRIVATE KEY-----\nMII"));
        assert!(shaped("-----BEGIN OPENSSH PRIVATE KEY-----"));
        assert!(shaped(r#"{"private_key":"-----BEGIN RSA PRIVATE KEY-----\nMII"}"#));
        assert!(shaped("-----BEGIN PGP PRIVATE KEY BLOCK-----"));
        assert!(!shaped("-----BEGIN CERTIFICATE-----\nMII"));
        assert!(!shaped("-----BEGIN PUBLIC KEY-----"));
        assert!(!shaped("-----BEGIN PRIVATE KEY"));
        assert!(!shaped("PRIVATE KEY-----"));
    }

    /// Made at run time, so that scanners of this repository do not take the examples for leaks.
    fn token(prefix: &str, of: Of, length: usize) -> String {
        let alphabet: Vec<char> = "a9B0cD1eFa7".chars().collect();
        let letter = |at: usize| match of {
            Of::Hex => alphabet[at % 11].to_ascii_lowercase(),
            Of::Upper => alphabet[at % 11].to_ascii_uppercase(),
            _ => alphabet[at % 11],
        };
        prefix.chars().chain((0..length).map(letter)).collect()
    }

    #[test]
    fn every_well_known_token_is_found_at_the_start_and_after_a_delimiter() {
        for (prefix, of, length) in TOKENS {
            let token = token(std::str::from_utf8(prefix).unwrap(), *of, *length.start());
            for value in [
                token.clone(),
                format!("Bearer {token}"),
                format!("//registry.example/:_authToken={token}"),
                format!("https://{token}@github.com/a/b"),
                format!("{{\"t\":\"{token}\"}}"),
                format!("a,{token};b"),
            ] {
                assert!(has_token(value.as_bytes()), "{value}");
            }
            assert!(!has_token(format!("x{token}").as_bytes()), "{token} inside a word");
            assert!(!has_token(format!("/srv/{token}").as_bytes()), "{token} as a file");
            assert!(!has_token(&token.as_bytes()[..token.len() - 1]), "{token} less a byte");
        }
    }

    #[test]
    fn keys_of_the_shapes_in_use_are_found() {
        let body = token("", Of::Alnum, 48);
        for value in [
            format!("sk-{}", token("", Of::Hex, 32)),
            format!("sk-proj-{body}_x-{body}"),
            format!("sk-ant-api03-{body}-AA"),
            format!("sk-or-v1-{}", token("", Of::Hex, 64)),
            "sk-abcdefghijklmnopqrstuvwx".into(),
            format!("xoxb-123456789012-123456789012-{}", &body[..24]),
            format!("SG.{}.{}", &body[..22], &body[..43]),
            format!("eyJ{}.eyJ{}.{}", &body[..17], &body[..30], &body[..43]),
        ] {
            assert!(shaped(&value), "{value}");
        }
    }

    #[test]
    fn ordinary_values_are_no_credentials() {
        for value in [
            "sk-learn-contrib-example-notebooks",
            "sk-short",
            "ASIAPACIFICSOUTHEASTREGION",
            "npm_config_cache",
            "hf_transfer",
            "dapi",
            "SG.x",
            "eyJhbGciOi.x.y",
            "a.b.c",
            "/usr/local/bin:/usr/bin:/bin",
            "/home/sk-experiments-2024-results-v3:/x",
            "unix:abstract=/tmp/dbus-XXXX,guid=0123456789abcdef0123456789abcdef",
            "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33",
            "en_US.UTF-8",
            "xterm-256color",
            "",
        ] {
            assert!(!shaped(value), "{value}");
        }
    }

    #[test]
    fn a_proxy_keeps_its_password_but_not_a_name_like_a_credential() {
        for name in ["http_proxy", "HTTPS_PROXY", "All_Proxy", "ftp_proxy", "NO_PROXY"] {
            assert!(!is_credential(name.as_bytes(), b"http://u:p@proxy:3128"), "{name}");
        }
        assert!(is_credential(b"MY_HTTP_PROXY", b"http://u:p@proxy:3128"));
        assert!(is_credential(b"HTTP_PROXY_PASSWORD", b"x"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_scanners_panic(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            shaped_like_one(&value);
            named_like_one(&value);
        }

        #[test]
        fn no_pieces_of_credentials_make_the_scanners_panic(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "://", ":", "@", "/", "a", "-----BEGIN ", "PRIVATE KEY", "-----", "eyJ", ".", "sk-", "AKIA", "é",
                ]),
                0..12,
            )
        ) {
            shaped_like_one(pieces.concat().as_bytes());
        }

        #[test]
        fn a_password_is_found_whatever_is_around_it(
            before in "[ -~]{0,12}", user in "[a-z]{0,5}", password in "[!-.0-;=?-~&&[^\"'`@]]{1,9}", after in "[/ ][ -~]{0,12}"
        ) {
            let value = format!("{before} db://{user}:{password}@host{after}");
            prop_assert!(has_url_with_password(value.as_bytes()), "{}", value);
        }
    }
}
