import type { RE2JS } from "re2js";

/** Tests texts against one `pattern` of a JSON Schema. */
export interface SchemaPattern {
  test(text: string): boolean;
  /** Identifies the pattern: ajv shares one object between equal patterns. */
  toString(): string;
}

type Engine = typeof RE2JS;

let engine: Engine | undefined;

/** Loads the linear-time engine. Call it before a schema with patterns is compiled. */
export async function loadPatternEngine(): Promise<void> {
  engine ??= (await import("re2js")).RE2JS;
}

/**
 * Compiles a pattern so that a test takes time linear in the length of the text. The `RegExp` of JavaScript backtracks: a pattern such as
 * `^(a+)+$` from a server that is not trusted would stop the process. A pattern that the engine does not support (lookarounds,
 * backreferences, repetitions above 1,000) is not checked here and accepts every text. Throws `SyntaxError` if the pattern is malformed.
 */
export function schemaPattern(source: string): SchemaPattern {
  const native = new RegExp(source, "u");
  // Without the engine, only the patterns of the meta-schemas of ajv are compiled, which do not backtrack.
  const { test } =
    engine === undefined ? { test: (text: string) => native.test(text) } : linear(engine, source);
  return { test, toString: () => `/${source}/u` };
}

/** Whether the engine can check this pattern. Throws `SyntaxError` if the pattern is malformed. */
export function isSupported(source: string): boolean {
  void new RegExp(source, "u");
  return engine !== undefined && compiled(engine, source) !== undefined;
}

function linear(re2: Engine, source: string): Pick<SchemaPattern, "test"> {
  const expression = compiled(re2, source);
  return { test: expression === undefined ? () => true : (text) => expression.test(text) };
}

function compiled(re2: Engine, source: string): RE2JS | undefined {
  try {
    return re2.compile(re2.translateRegExp(withRe2Classes(source)));
  } catch {
    // The pattern is well-formed, because `RegExp` accepts it: the engine does not support it.
    return undefined;
  }
}

/** What `\s` matches in JavaScript. In RE2 it matches ASCII white space only. */
const whiteSpace = String.raw`\s\v\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const lineEnds = String.raw`\n\r\x{2028}\x{2029}`;

/** The parts of a pattern whose meaning differs between JavaScript and RE2, and those that start and end a character class. */
const differing = /\\u(?<high>[dD][89abAB][\da-fA-F]{2})\\u(?<low>[dD][c-fC-F][\da-fA-F]{2})|\\.|\[|\]|\./gsu;

/** Writes a pattern of JavaScript so that white space, `.` and escaped surrogate pairs mean the same in RE2. */
function withRe2Classes(source: string): string {
  let isInClass = false;
  return source.replaceAll(differing, (part, high?: string, low?: string) => {
    if (part === "[") isInClass = true;
    if (part === "]") isInClass = false;
    if (part === "." && !isInClass) return `[^${lineEnds}]`;
    if (part === String.raw`\s`) return isInClass ? whiteSpace : `[${whiteSpace}]`;
    if (part === String.raw`\S` && !isInClass) return `[^${whiteSpace}]`;
    if (part === String.raw`\S`) throw new SyntaxError("RE2 has no negated class inside a class");
    if (high === undefined || low === undefined) return part;
    const pair = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16));
    return String.raw`\u{${pair.codePointAt(0)?.toString(16)}}`;
  });
}
