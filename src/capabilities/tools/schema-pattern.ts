import { re2Pattern } from "./re2-pattern.ts";

/** Tests texts against one `pattern` of a JSON Schema. */
export interface SchemaPattern {
  test(text: string): boolean;
  /** Identifies the pattern: ajv shares one object between equal patterns. */
  toString(): string;
}

let isEngineUsed = false;

/** Makes later patterns use the linear-time engine. Call it before a schema with patterns is compiled. */
export function usePatternEngine(): void {
  isEngineUsed = true;
}

/**
 * Compiles a pattern so that a test takes time linear in the length of the text. The `RegExp` of JavaScript backtracks: a pattern such as
 * `^(a+)+$` from a server that is not trusted would stop the process. A pattern that the engine does not support (lookarounds,
 * backreferences, repetitions above 1,000) is not checked here and accepts every text. Throws `SyntaxError` if the pattern is malformed.
 */
export function schemaPattern(source: string): SchemaPattern {
  const native = new RegExp(source, "u");
  // Without the engine, only the patterns of the meta-schemas of ajv are compiled, which do not backtrack.
  const { test } = isEngineUsed ? linear(source) : { test: (text: string) => native.test(text) };
  return { test, toString: () => `/${source}/u` };
}

/** Whether the engine can check this pattern. Throws `SyntaxError` if the pattern is malformed. */
export function isSupported(source: string): boolean {
  void new RegExp(source, "u");
  return isEngineUsed && re2Pattern(source) !== undefined;
}

function linear(source: string): Pick<SchemaPattern, "test"> {
  const expression = re2Pattern(source);
  return { test: expression === undefined ? () => true : (text) => expression.test(text) };
}
