//! `initialize`, read leniently: an editor whose parameters have one odd field must not be left without a server.
//!
//! The types of the library refuse all for an unknown word in any capability, an empty `rootUri`, a folder with a space. So what is
//! needed is taken from the JSON first, and the library gets what it can read.

use serde_json::{Value, json};

use crate::capabilities::ClientFeatures;
use crate::uri;

/// Takes what the client can do out of the parameters, and leaves what the library can read. `None` for parameters that are none.
pub fn simplify(params: &mut Value) -> Option<ClientFeatures> {
    let object = params.as_object_mut()?;
    let capabilities = object.get_mut("capabilities").filter(|capabilities| capabilities.is_object())?;
    let features = ClientFeatures::read(capabilities);
    *capabilities = json!({});
    let kept =
        ["capabilities", "processId", "rootUri", "rootPath", "workspaceFolders", "initializationOptions"];
    object.retain(|name, _| kept.contains(&name.as_str()));
    clean(object.get_mut("processId"), |process| {
        process.as_u64().filter(|process| u32::try_from(*process).is_ok()).map(Value::from)
    });
    clean(object.get_mut("rootPath"), |path| path.as_str().map(Value::from));
    clean(object.get_mut("rootUri"), clean_uri);
    clean(object.get_mut("workspaceFolders"), |folders| {
        let folder = |folder: &Value| Some(json!({"uri": clean_uri(&folder["uri"])?, "name": ""}));
        Some(folders.as_array()?.iter().filter_map(folder).collect())
    });
    Some(features)
}

/// Puts what can be read in place of a field; null for nothing.
fn clean(field: Option<&mut Value>, read: impl Fn(&Value) -> Option<Value>) {
    if let Some(field) = field {
        *field = read(field).unwrap_or_default();
    }
}

fn clean_uri(uri: &Value) -> Option<Value> {
    let text = uri.as_str().filter(|text| !text.is_empty())?;
    let is_strict = text.parse::<tower_lsp::ls_types::Uri>().is_ok();
    Some(if is_strict { text.into() } else { uri::strict(text).into() })
}

#[cfg(test)]
mod tests {
    use tower_lsp::ls_types::InitializeParams;

    use super::*;

    #[test]
    fn odd_fields_cost_only_themselves() {
        let mut params = json!({
            "processId": -1,
            "rootUri": "",
            "rootPath": 7,
            "trace": "compact",
            "locale": 3,
            "clientInfo": "vim",
            "workspaceFolders": [{"uri": "file:///a b", "name": 1}, 5, {"uri": "file:///c"}],
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", 9]},
                "window": {"workDoneProgress": true},
                "textDocument": {"codeAction": "yes", "hover": {"contentFormat": ["markdown", "html"]}},
            },
        });
        let features = simplify(&mut params).unwrap();
        assert!(features.progress && features.markdown);
        let read: InitializeParams = serde_json::from_value(params).unwrap();
        let folders: Vec<_> =
            read.workspace_folders.unwrap().iter().map(|folder| folder.uri.to_string()).collect();
        assert_eq!(folders, ["file:///a%20b", "file:///c"]);
        assert_eq!(read.process_id, None);
        for none in [json!(null), json!([]), json!({}), json!({"capabilities": 3})] {
            assert_eq!(simplify(&mut none.clone()), None, "{none}");
        }
    }
}
