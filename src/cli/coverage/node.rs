//! A YAML or JSON document, as a tree no larger than its text: an alias stays one, and is followed where it is asked.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

/// How deep a document may be.
const DEEPEST: usize = 100;

/// A value. Which scalar it is makes no difference here: a text is what stands there.
#[derive(Debug)]
pub(super) enum Node {
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    Text(String),
    /// What stands at this number of [`Tree`]'s anchors.
    Alias(usize),
}

/// A document.
#[derive(Debug)]
pub(super) struct Tree {
    root: Node,
    /// What is named by an anchor, and stands there as an alias.
    anchors: HashMap<usize, Node>,
}

impl Tree {
    /// What begins as JSON does is that, or else YAML in the same brackets.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        if !text.trim_start().starts_with('{') {
            return Reading::default().yaml(text);
        }
        // It refuses what is deeper than 128.
        match serde_json::from_str(text) {
            Ok(value) => Ok(Tree { root: of_json(value), anchors: HashMap::new() }),
            Err(error) => Reading::default().yaml(text).map_err(|_| format!("it is no JSON: {error}")),
        }
    }

    pub(super) fn root(&self) -> &Node {
        self.followed(&self.root)
    }

    /// What an alias stands for. One that leads to itself, or nowhere, stays what it is.
    pub(super) fn followed<'a>(&'a self, mut node: &'a Node) -> &'a Node {
        for _ in 0..DEEPEST {
            match node {
                Node::Alias(anchor) => match self.anchors.get(anchor) {
                    Some(found) => node = found,
                    None => break,
                },
                _ => break,
            }
        }
        node
    }

    pub(super) fn get<'a>(&'a self, node: &'a Node, key: &str) -> Option<&'a Node> {
        let Node::Map(entries) = node else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| self.followed(value))
    }

    pub(super) fn text<'a>(&'a self, node: &'a Node, key: &str) -> Option<&'a str> {
        match self.get(node, key)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list<'a>(&'a self, node: &'a Node, key: &str) -> impl Iterator<Item = &'a Node> {
        let items = match self.get(node, key) {
            Some(Node::List(items)) => items.as_slice(),
            _ => &[],
        };
        items.iter().map(|item| self.followed(item))
    }

    pub(super) fn entries<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let entries = match node {
            Node::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(name, value)| (name.as_str(), self.followed(value)))
    }

    /// What a `$ref` within this document points to: a JSON pointer after its `#`.
    pub(super) fn at(&self, reference: &str) -> Option<&Node> {
        let pointer = reference.strip_prefix("#/")?;
        pointer.split('/').try_fold(self.root(), |node, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            self.get(node, &step)
        })
    }
}

fn of_json(value: serde_json::Value) -> Node {
    match value {
        serde_json::Value::Object(entries) => {
            Node::Map(entries.into_iter().map(|(name, value)| (name, of_json(value))).collect())
        }
        serde_json::Value::Array(items) => Node::List(items.into_iter().map(of_json).collect()),
        serde_json::Value::String(text) => Node::Text(text),
        other => Node::Text(other.to_string()),
    }
}

/// What is open while events come.
#[derive(Default)]
struct Reading {
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
}

enum Open {
    /// Its anchor, what it has, and the key whose value comes next.
    Map(usize, Vec<(String, Node)>, Option<String>),
    List(usize, Vec<Node>),
}

impl Reading {
    fn yaml(mut self, text: &str) -> Result<Tree, String> {
        let mut documents = 0;
        for event in Parser::new_from_str(text) {
            let (event, _) = event.map_err(|error| format!("it is no YAML: {error}"))?;
            match event {
                Event::DocumentStart(_) => documents += 1,
                // Only the first document is read.
                _ if documents > 1 => break,
                Event::Scalar(text, _, anchor, _) => self.done(anchor, Node::Text(text.into_owned())),
                Event::Alias(anchor) => self.done(0, Node::Alias(anchor)),
                Event::SequenceStart(anchor, _) => self.begin(Open::List(anchor, Vec::new()))?,
                Event::MappingStart(anchor, _) => self.begin(Open::Map(anchor, Vec::new(), None))?,
                Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                    Some(Open::List(anchor, items)) => self.done(anchor, Node::List(items)),
                    Some(Open::Map(anchor, entries, _)) => self.done(anchor, Node::Map(entries)),
                    None => {}
                },
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        let root = self.root.ok_or("it is empty")?;
        Ok(Tree { root, anchors: self.anchors })
    }

    fn begin(&mut self, open: Open) -> Result<(), String> {
        if self.open.len() >= DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        self.open.push(open);
        Ok(())
    }

    /// A value is whole. One that has an anchor is kept there, once, and an alias of it stands in its place.
    fn done(&mut self, anchor: usize, mut node: Node) {
        // A key has to be a text; whatever else one is, nobody asks for it.
        if let Some(Open::Map(_, _, key @ None)) = self.open.last_mut() {
            *key = Some(match &node {
                Node::Text(text) => text.clone(),
                _ => String::new(),
            });
            if anchor > 0 {
                self.anchors.insert(anchor, node);
            }
            return;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node);
            node = Node::Alias(anchor);
        }
        match self.open.last_mut() {
            Some(Open::Map(_, entries, key)) => entries.push((key.take().unwrap_or_default(), node)),
            Some(Open::List(_, items)) => items.push(node),
            None => self.root = self.root.take().or(Some(node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Tree};

    #[test]
    fn yaml_and_json_are_one() {
        for text in [
            "a: [1, {b: x}]\n",
            "{a: [1, {b: x}]}",
            "{\"a\": [1, {\"b\": \"x\"}]}",
            "\u{feff}a:\n- 1\n- b: x\n---\na: other\n",
        ] {
            let tree = Tree::read(text).unwrap();
            let items: Vec<_> = tree.list(tree.root(), "a").collect();
            assert!(matches!(items[0], Node::Text(text) if text == "1"), "{text}");
            assert_eq!(tree.text(items[1], "b"), Some("x"), "{text}");
        }
    }

    #[test]
    fn aliases_do_not_multiply() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..60 {
            let below = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(", "));
        }
        let tree = Tree::read(&text).unwrap();
        assert_eq!(tree.list(tree.root(), "a59").count(), 9);
        let tree = Tree::read("a: &a *a\nb: &b { c: *b }\n").map(|tree| tree.entries(tree.root()).count());
        assert!(tree.is_err() || tree == Ok(2), "{tree:?}");
    }

    #[test]
    fn what_is_refused() {
        for (text, words) in [
            ("", "empty"),
            ("a: [", "no YAML"),
            ("{\"a\": ", "no JSON"),
            (&"[".repeat(10_000), "recursion limit"),
            (&("[".repeat(150) + &"]".repeat(150)), "100 deep"),
            (&(0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>(), "100 deep"),
            (&"{\"a\":".repeat(1_000), "recursion limit"),
        ] {
            let refused = Tree::read(text).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn references_within() {
        let tree = Tree::read("components: { pathItems: { 'a/b~': { get: x } } }\n").unwrap();
        let found = tree.at("#/components/pathItems/a~1b~0").unwrap();
        assert_eq!(tree.text(found, "get"), Some("x"));
        assert!(tree.at("#/components/none").is_none() && tree.at("other.yaml").is_none());
    }
}
