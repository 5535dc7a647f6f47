//! Owns the tests of the client against a server that answers as the registry's documentation says.

#![allow(clippy::unwrap_used)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::Arc,
};

use canalis_types::ErrorKind;

use super::*;

/// Requests that came, each as `METHOD path authorization body`.
type Seen = Arc<Mutex<Vec<String>>>;

/// A server that gives each request the status and body of the first path that it begins with.
fn server(answers: &'static [(&'static str, u16, &'static str)]) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let noted = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut request, mut line) = (String::new(), String::new());
            let (mut length, mut authorization) = (0, String::new());
            reader.read_line(&mut request).unwrap();
            while reader.read_line(&mut line).unwrap() > 2 {
                let (name, value) = line.split_once(':').unwrap();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "authorization" => value.trim().clone_into(&mut authorization),
                    _ => {}
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut words = request.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let body = String::from_utf8(body).unwrap();
            noted.lock().unwrap().push(format!("{method} {path} {authorization} {body}"));
            let (_, status, body) = answers.iter().find(|(start, ..)| path.starts_with(start)).unwrap();
            let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close", body.len());
            reader.get_mut().write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    (address, seen)
}

fn registry(urls: &[&str], register: bool) -> Registry {
    Registry::new(RegistryOptions {
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        account: Some(("user".into(), "secret".into())),
        authorities: None,
        register,
    })
    .unwrap()
}

#[test]
fn schemas_are_asked_for_once_and_with_the_account() {
    let (address, seen) = server(&[("/schemas/ids/7", 200, r#"{"schema":"\"long\""}"#)]);
    // The first address is closed, the second has a slash too many.
    let registry = registry(&["http://127.0.0.1:1", &format!("{address}/")], true);
    for _ in 0..2 {
        assert_eq!(registry.by_id(7).unwrap().unwrap(), "\"long\"");
    }
    assert_eq!(*seen.lock().unwrap(), ["GET /schemas/ids/7 Basic dXNlcjpzZWNyZXQ= "]);
}

#[test]
fn what_a_message_is_to_blame_for_is_told_from_what_the_registry_is() {
    let (address, _) = server(&[
        ("/schemas/ids/1", 404, r#"{"error_code":40403,"message":"Schema not found"}"#),
        ("/schemas/ids/2", 200, r#"{"schema":"{}","schemaType":"JSON"}"#),
        ("/schemas/ids/3", 200, r#"{"schema":"{}","references":[{"name":"a","subject":"a","version":1}]}"#),
        ("/schemas/ids/4", 503, "<html>no leader</html>"),
        ("/schemas/ids/5", 403, r#"{"error_code":403,"message":"Forbidden"}"#),
        ("/schemas/ids/6", 404, "Not Found"),
    ]);
    let registry_at = registry;
    let registry = registry_at(&[&address], true);
    for (id, part) in [(1, "not known"), (2, "of JSON"), (3, "other subjects")] {
        let why = registry.by_id(id).unwrap().unwrap_err();
        assert!(why.contains(part), "{why}");
    }
    for (id, kind, part) in [
        (4, ErrorKind::Transient, "<html>no leader</html>"),
        (5, ErrorKind::Source, "403 (403): Forbidden"),
        (6, ErrorKind::Source, "Not Found"),
    ] {
        let error = registry.by_id(id).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part), "{error}");
    }
    let nowhere = registry_at(&["http://127.0.0.1:1"], true);
    assert_eq!(nowhere.by_id(1).unwrap_err().kind(), ErrorKind::Transient);
}

#[test]
fn registering_and_looking_up_differ_in_the_path() {
    static ANSWERS: &[(&str, u16, &str)] = &[("/subjects/a%2Fb-value", 200, r#"{"id":3}"#)];
    for (register, path) in [(true, "/subjects/a%2Fb-value/versions"), (false, "/subjects/a%2Fb-value")] {
        let (address, seen) = server(ANSWERS);
        let registry = registry(&[&address], register);
        for _ in 0..2 {
            assert_eq!(registry.register("a/b-value", "\"long\"").unwrap(), 3);
        }
        let expected = format!("POST {path} Basic dXNlcjpzZWNyZXQ= {{\"schema\":\"\\\"long\\\"\"}}");
        assert_eq!(*seen.lock().unwrap(), [expected]);
    }
}

#[test]
fn a_refusal_is_shown_in_full() {
    let (address, _) = server(&[
        ("/subjects/s/versions/latest", 200, r#"{"version":4,"schema":"\"int\""}"#),
        ("/compatibility", 200, r#"{"is_compatible":false,"messages":["first reason","second reason"]}"#),
        ("/subjects/s/versions", 409, r#"{"error_code":409,"message":"incompatible"}"#),
    ]);
    let error = registry(&[&address], true).register("s", "\"long\"").unwrap_err();
    assert_eq!(error.code(), Code::SinkFailed);
    for part in
        ["409 (409): incompatible", "first reason; second reason", "version 4 of the subject is \"int\""]
    {
        assert!(error.message().contains(part), "{error}");
    }
    let (address, _) =
        server(&[("/subjects/s", 404, r#"{"error_code":40401,"message":"Subject not found"}"#)]);
    let error = registry(&[&address], false).register("s", "\"long\"").unwrap_err();
    assert!(error.message().contains("avro.auto-register"), "{error}");
}

#[test]
fn addresses_and_certificates_are_checked() {
    let with = |url: &str, authorities: Option<&str>| {
        Registry::new(RegistryOptions {
            urls: vec![url.to_owned()],
            authorities: authorities.map(str::to_owned),
            ..RegistryOptions::default()
        })
    };
    assert!(with("https://registry:8081/path", None).is_ok());
    for url in ["registry:8081", "ftp://registry", "http://user:secret@registry"] {
        let why = with(url, None).unwrap_err();
        assert!(!why.contains("secret"), "{why}");
    }
    assert!(with("https://registry", Some("no PEM")).is_err());
    assert!(Registry::new(RegistryOptions::default()).is_err());
}
