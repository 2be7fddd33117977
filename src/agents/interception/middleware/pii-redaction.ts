import {
  type CompilePattern,
  type DeltaFilter,
  Fault,
  type JsonObject,
  type StreamedDelta,
  type TextPattern,
  type TextSpan,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { comparableText, type ComparableText } from "./comparable-text.ts";
import type { Layer } from "./layer.ts";
import { type EditText, editJson, editMessage, editOutput, onceEach } from "./message-text.ts";
import { editThrown } from "./tool-error.ts";
import { longestFind, mayHoldFind, piiPatterns, type PiiKind, type PiiPattern } from "./pii-pattern.ts";

interface BufferedTextOptions {
  readonly edit: EditText;
  /** Returns how many characters at the end of the text may still change when more text arrives. */
  readonly held: (text: string) => number;
  /** The delta types that are edited. Other deltas pass unchanged. */
  readonly of: readonly StreamedDelta["type"][];
}

/**
 * Edits a streamed text as if it were complete. The end of the text that may still change is held back until more
 * text has arrived. Text, reasoning and the arguments of each call are edited separately.
 */
class BufferedText implements DeltaFilter {
  readonly #options: BufferedTextOptions;
  readonly #waiting = new Map<string, StreamedDelta>();

  constructor(options: BufferedTextOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#waiting.clear();
  }

  push(delta: StreamedDelta): readonly StreamedDelta[] {
    const { edit, held, of } = this.#options;
    if (!of.includes(delta.type)) return [delta];
    const key = delta.type === "tool_input_delta" ? `${delta.type} ${delta.callId}` : delta.type;
    const text = (this.#waiting.get(key)?.text ?? "") + delta.text;
    const cut = text.length - Math.min(text.length, held(text));
    this.#waiting.set(key, { ...delta, text: text.slice(cut) });
    return cut === 0 ? [] : [{ ...delta, text: edit(text.slice(0, cut)) }];
  }

  flush(): readonly StreamedDelta[] {
    const rest = [...this.#waiting.values()].filter(({ text }) => text !== "");
    this.#waiting.clear();
    return rest.map((delta) => ({ ...delta, text: this.#options.edit(delta.text) }));
  }
}

/** A pattern of your own that `piiRedaction` replaces. */
export interface OwnPattern {
  /** The label that replaces a match, in brackets. */
  readonly label: string;
  readonly pattern: RegExp;
  /** Maximum length of a match in characters. As many characters of a streamed answer are held back. */
  readonly maxLength: number;
}

export interface PiiRedactionOptions {
  /** The kinds to redact. Default: all. */
  readonly kinds?: readonly PiiKind[];
  readonly patterns?: readonly OwnPattern[];
  /**
   * Whether patterns that need backtracking (lookarounds, backreferences) are accepted. They run with `RegExp`, and
   * some texts then block the process. Default: `false`.
   */
  readonly allowBacktracking?: boolean;
  /** Returns the replacement of a match. Default: the label in brackets, such as `[EMAIL]`. */
  readonly replacement?: (label: string) => string;
  /** Whether requests to the model are redacted. Default: `true`. */
  readonly toModel?: boolean;
  /** Whether the model's text and reasoning are redacted, including deltas. Default: `true`. */
  readonly fromModel?: boolean;
  /** Whether tool arguments are redacted. Default: `true`. */
  readonly toTools?: boolean;
  /** Whether tool results, errors and progress are redacted. Default: `true`. */
  readonly fromTools?: boolean;
  /** Compiles custom patterns. */
  readonly compile: CompilePattern;
}

const knownOptions = optionTable({
  kinds: is.list({ of: is.choice(Object.keys(piiPatterns)) }),
  patterns: is.list(),
  allowBacktracking: is.boolean(),
  replacement: is.callback(),
  toModel: is.boolean({ default: true }),
  fromModel: is.boolean({ default: true }),
  toTools: is.boolean({ default: true }),
  fromTools: is.boolean({ default: true }),
  compile: is.any,
} satisfies OptionKinds<PiiRedactionOptions>);

/**
 * Creates middleware that redacts personal data in what is sent to models and tools and in what they return. Digits
 * of all scripts, look-alike separators and invisible characters do not hide a match; the rest of the text does not
 * change. Streamed text is held back while it may still become part of a match, so that no part of a match is
 * shown.
 */
export function piiRedaction(options: PiiRedactionOptions): Layer {
  const { toModel, fromModel, toTools, fromTools } = knownOptions.read("piiRedaction()", options);
  const redaction = new Redaction(options);
  const { edit } = redaction;
  const redactSent = onceEach((message) => editMessage(message, { words: edit, calls: edit }));
  const answered = { ...(fromModel && { words: edit }), ...(toTools && { calls: edit }) };
  const of = [
    ...(fromModel ? (["text_delta", "reasoning_delta"] as const) : []),
    ...(toTools ? (["tool_input_delta"] as const) : []),
  ];
  const { held } = redaction;
  return {
    name: "pii-redaction",
    ...((toModel || of.length > 0) &&
      ({
        chat: async (context, next) => {
          const { request } = context;
          if (toModel) {
            const messages = redactSent(request.messages);
            if (messages !== request.messages) context.request = { ...request, messages };
          }
          if (of.length > 0 && context.streaming) context.filters.push(new BufferedText({ edit, held, of }));
          await next();
          const { result } = context;
          if (of.length === 0 || result === undefined) return;
          const message = editMessage(result.message, answered);
          if (message !== result.message) context.result = { ...result, message };
        },
      } satisfies Layer)),
    ...((toTools || fromTools) &&
      ({
        function: async (context, next) => {
          if (toTools) context.arguments = editJson(context.arguments, edit) as JsonObject;
          if (!fromTools) return next();
          context.filters.push((update) => editJson(update, edit));
          await editThrown(next, edit);
          const { result } = context;
          if (result === undefined) return;
          const output = editOutput(result.output, edit);
          if (output !== result.output) context.result = { ...result, output };
        },
      } satisfies Layer)),
  };
}

/** A match in the original text. */
interface Find {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

/** A custom pattern. */
interface CompiledPattern {
  readonly label: string;
  readonly pattern: TextPattern;
}

class Redaction {
  readonly #own: readonly CompiledPattern[];
  readonly #kinds: readonly PiiPattern[];
  readonly #replacement: (label: string) => string;
  /** Number of characters that are always held back, because custom patterns may match any text. */
  readonly #heldAlways: number;

  constructor(options: PiiRedactionOptions) {
    const { kinds, patterns = [], replacement = bracketed } = options;
    const all = Object.keys(piiPatterns) as PiiKind[];
    this.#own = patterns.map((pattern) => ownPattern(pattern, options));
    this.#kinds = (kinds ?? all).map((kind) => piiPatterns[kind]);
    this.#replacement = replacement;
    this.#heldAlways = Math.max(0, ...patterns.map(({ maxLength }) => maxLength));
  }

  readonly edit: EditText = (text) => {
    let edited = text;
    for (const { label, pattern } of this.#own)
      edited = this.#replace(
        edited,
        pattern.finds(edited).map(([from, to]) => ({ from, to, label })),
      );
    return mayHoldFind.test(edited) ? this.#replace(edited, this.#finds(edited)) : edited;
  };

  #replace(text: string, finds: readonly Find[]): string {
    let redacted = "";
    let done = 0;
    for (const { from, to, label } of finds) {
      redacted += text.slice(done, from) + this.#replacement(label);
      done = to;
    }
    return redacted + text.slice(done);
  }

  /**
   * Returns the matches of the built-in patterns, in their order in the text. Text that matches an earlier pattern
   * is not matched again.
   */
  #finds(text: string): readonly Find[] {
    const comparable = comparableText(text);
    const finds: Find[] = [];
    let rest = comparable.text;
    for (const { label, pattern, isReal = () => true } of this.#kinds) {
      rest = rest.replace(pattern, (found: string, index: number) => {
        if (!isReal(found)) return found;
        finds.push({ from: comparable.placeOf(index), to: comparable.placeOf(index + found.length), label });
        return taken.repeat(found.length);
      });
    }
    return finds.toSorted((one, other) => one.from - other.from);
  }

  readonly held = (text: string): number => {
    // The first half of a character outside the basic plane becomes a character with the next piece.
    const whole = /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
    const comparable = comparableText(whole);
    const open = comparable.placeOf(comparable.text.length - openWords(comparable.text));
    let cut = Math.min(open, Math.max(0, text.length - this.#heldAlways));
    // A match that the cut would split is held back as a whole.
    const spans = [...this.#spans(whole), ...this.#comparableSpans(comparable)];
    for (let isMoved = true; isMoved;) {
      const split = spans.find(([from, to]) => from < cut && to > cut);
      isMoved = split !== undefined;
      if (split !== undefined) [cut] = split;
    }
    return text.length - cut;
  };

  #spans(text: string): readonly TextSpan[] {
    return this.#own.flatMap(({ pattern }) => pattern.finds(text));
  }

  #comparableSpans({ text, placeOf }: ComparableText): readonly TextSpan[] {
    return this.#kinds.flatMap(({ pattern }) =>
      [...text.matchAll(pattern)].map(({ index, 0: found }): TextSpan => [
        placeOf(index),
        placeOf(index + found.length),
      ]),
    );
  }
}

/** Replaces a match in the searched text, so that no later pattern matches it. */
const taken = "\0";

const inFinds = /[A-Za-z\d._%+@()-]/u;
/** Matches words that can be part of a match of several words. */
const numeric = /^[A-Z\d.()+-]*$/u;
const numericWord = /\d|^[A-Z]{1,4}$/u;

/**
 * Returns the length of the last word and of preceding words that may belong to the same match. At most
 * `longestFind` characters.
 */
function openWords(text: string): number {
  const least = Math.max(0, text.length - longestFind);
  let start = wordStart(text, text.length, least);
  let word = text.slice(start);
  while (numeric.test(word) && text[start - 1] === " ") {
    const from = wordStart(text, start - 1, least);
    word = text.slice(from, start - 1);
    if (from === start - 1 || !numericWord.test(word)) break;
    start = from;
  }
  return text.length - start;
}

/** Start index of the word that ends before `end`. */
function wordStart(text: string, end: number, least: number): number {
  let start = end;
  while (start > least && inFinds.test(text[start - 1] ?? "")) start--;
  return start;
}

function ownPattern(
  { label, pattern, maxLength }: OwnPattern,
  { compile, allowBacktracking = false }: PiiRedactionOptions,
): CompiledPattern {
  if (!(maxLength >= 1))
    throw new Fault(
      "invalid_argument",
      `invalid maxLength ${maxLength} of pattern ${label} of piiRedaction: expected at least 1`,
    );
  const owner = `pattern ${label} of piiRedaction()`;
  return { label, pattern: compile(pattern, { owner, allowBacktracking }) };
}

function bracketed(label: string): string {
  return `[${label}]`;
}
