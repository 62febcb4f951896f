"""Index kinds. Each is one package below; `registry` lists them, `kind` says what the rest of Grebe knows of any of them."""
