import { Fault, type JsonObject } from "../../kernel/index.ts";
import { HeldText } from "./held-text.ts";
import type { Layer } from "./layer.ts";
import { editJson, editMessage, editOutput, onceEach, type EditText } from "./message-text.ts";
import { editThrown } from "./tool-error.ts";
import { longestFind, mayHoldFind, piiPatterns, type PiiKind, type PiiPattern } from "./pii-pattern.ts";

export interface OwnPattern {
  /** Stands in the text in brackets. */
  readonly label: string;
  readonly pattern: RegExp;
  /** Characters of the longest find: so much of a streamed answer is held back. */
  readonly maxLength: number;
}

export interface PiiRedactionOptions {
  /** All unless told. */
  readonly kinds?: readonly PiiKind[];
  readonly patterns?: readonly OwnPattern[];
  /** What stands in place of a find: `[EMAIL]` unless told. */
  readonly replacement?: (label: string) => string;
  /** What the model is sent. All four are on unless told. */
  readonly toModel?: boolean;
  /** What it says and thinks, deltas included. */
  readonly fromModel?: boolean;
  /** What it calls tools with, and what they are given. */
  readonly toTools?: boolean;
  /** Their results, what they throw, and what they say of their progress. */
  readonly fromTools?: boolean;
}

/**
 * Takes personal data out of what goes to models and tools and what comes back. What streams is held back as long as it may still
 * turn out to be part of a find, so that none is shown in pieces.
 */
export function piiRedaction(options: PiiRedactionOptions = {}): Layer {
  const { toModel = true, fromModel = true, toTools = true, fromTools = true } = options;
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
          if (of.length > 0 && context.streaming) context.filters.push(new HeldText({ edit, held, of }));
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

class Redaction {
  readonly #own: readonly PiiPattern[];
  readonly #patterns: readonly PiiPattern[];
  readonly #replacement: (label: string) => string;
  /** Own patterns may span any words. */
  readonly #heldAlways: number;

  constructor({ kinds, patterns = [], replacement = bracketed }: PiiRedactionOptions) {
    const wanted = kinds ?? (Object.keys(piiPatterns) as PiiKind[]);
    this.#own = patterns.map(ownPattern);
    this.#patterns = [...this.#own, ...wanted.map((kind) => piiPatterns[kind])];
    this.#replacement = replacement;
    this.#heldAlways = Math.max(0, ...patterns.map(({ maxLength }) => maxLength));
  }

  #patternsFor(text: string): readonly PiiPattern[] {
    return mayHoldFind.test(text) ? this.#patterns : this.#own;
  }

  readonly edit: EditText = (text) => {
    let edited = text;
    for (const { label, pattern, isReal } of this.#patternsFor(text)) {
      edited = edited.replace(pattern, (found) =>
        isReal === undefined || isReal(found) ? this.#replacement(label) : found,
      );
    }
    return edited;
  };

  readonly held = (text: string): number => {
    const open = Math.max(openWords(text), Math.min(text.length, this.#heldAlways));
    const cut = text.length - open;
    // A find that the cut would go through stays whole, behind it.
    let first = cut;
    for (const { pattern } of this.#patterns) {
      for (const { index, 0: found } of text.matchAll(pattern))
        if (index < first && index + found.length > cut) first = index;
    }
    return text.length - first;
  };
}

const inFinds = /[A-Za-z\d._%+@()-]/u;
/** What a find of several words is made of. */
const numeric = /^[A-Z\d.()+-]*$/u;
const numericWord = /\d|^[A-Z]{1,4}$/u;

/** The last word, and the words before it that could belong to one find with it. At most `longestFind` characters. */
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

/** Where the word that ends before `end` begins. */
function wordStart(text: string, end: number, least: number): number {
  let start = end;
  while (start > least && inFinds.test(text[start - 1] ?? "")) start--;
  return start;
}

function ownPattern({ label, pattern, maxLength }: OwnPattern): PiiPattern {
  if (!(maxLength >= 1))
    throw new Fault("invalid_argument", `piiRedaction: maxLength of ${label} is ${maxLength}: at least 1`);
  const flags = pattern.flags.includes("g") ? pattern.flags : `${pattern.flags}g`;
  return { label, pattern: new RegExp(pattern.source, flags) };
}

function bracketed(label: string): string {
  return `[${label}]`;
}
