package grebe.spark;

/** JSON, written in one go: a plan is described for every query, so this allocates nothing but its text. */
final class Json {
  private final StringBuilder out = new StringBuilder(1024);
  private boolean first = true;

  Json open() {
    return begin('{');
  }

  Json close() {
    return end('}');
  }

  Json list() {
    return begin('[');
  }

  Json endList() {
    return end(']');
  }

  Json key(String name) {
    comma();
    quoted(name);
    out.append(':');
    first = true;
    return this;
  }

  Json text(String value) {
    comma();
    if (value == null) {
      out.append("null");
    } else {
      quoted(value);
    }
    return this;
  }

  Json number(long value) {
    comma();
    out.append(value);
    return this;
  }

  Json truth(boolean value) {
    comma();
    out.append(value);
    return this;
  }

  Json nothing() {
    comma();
    out.append("null");
    return this;
  }

  private Json begin(char bracket) {
    comma();
    out.append(bracket);
    first = true;
    return this;
  }

  private Json end(char bracket) {
    out.append(bracket);
    first = false;
    return this;
  }

  private void comma() {
    if (!first) {
      out.append(',');
    }
    first = false;
  }

  private void quoted(String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20 || Character.isSurrogate(c)) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  @Override
  public String toString() {
    return out.toString();
  }
}
