//! What the tools around the library say: the model of clients and a provider in trouble.

mod simulate;
