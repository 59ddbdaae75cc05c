/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// An integer.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Several replies.
    List(Vec<Reply>),
}
