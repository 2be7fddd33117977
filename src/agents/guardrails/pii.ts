import { Fault, type Guardrail } from "../../kernel/index.ts";
import { passesIban, passesLuhn } from "./check-digits.ts";
import { plainText } from "./guarded-text.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export type PiiKind = "card" | "iban" | "ssn" | "email" | "phone" | "ip_address";

export interface PiiOptions {
  /** Unless told: all but `ip_address`. */
  readonly kinds?: readonly PiiKind[];
  /** Unless told, noted in the input and withheld in the output. */
  readonly stages?: GuardedStages;
}

interface Finder {
  readonly called: string;
  readonly pattern: RegExp;
  readonly holds?: (match: string) => boolean;
}

const finders: Readonly<Record<PiiKind, Finder>> = {
  card: {
    called: "payment card number",
    pattern: /(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d])/gu,
    holds: (match) => {
      const digits = match.replaceAll(/\D/gu, "");
      return !/^(\d)\1+$/u.test(digits) && passesLuhn(digits);
    },
  },
  iban: {
    called: "IBAN",
    pattern: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/gu,
    holds: (match) => passesIban(match.replaceAll(" ", "")),
  },
  ssn: {
    called: "US social security number",
    pattern: /\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b/gu,
  },
  email: {
    called: "e-mail address",
    pattern: /[\p{L}\p{N}._%+-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+\p{L}{2,24}/gu,
  },
  phone: {
    called: "phone number",
    pattern:
      /(?<![\d+])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[.-]\d{3}[.-]\d{4})(?!\d)/gu,
  },
  ip_address: {
    called: "IP address",
    pattern: /\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b/gu,
  },
};

const usual: readonly PiiKind[] = ["card", "iban", "ssn", "email", "phone"];

/** Finds personal data. Card numbers count only if their check digit is right (Luhn), IBANs only if theirs are. */
export function pii({
  kinds = usual,
  stages = { input: "warn", output: "block" },
}: PiiOptions = {}): Guardrail {
  const unknown = kinds.find((kind) => !Object.hasOwn(finders, kind));
  if (unknown !== undefined || kinds.length === 0) {
    throw new Fault(
      "invalid_argument",
      `kinds of pii has ${JSON.stringify(unknown ?? [])}: name some of ${Object.keys(finders).join(", ")}`,
    );
  }
  return textGuardrail({
    name: "pii",
    stages,
    examine: (text) => {
      const plain = plainText(text);
      const found = kinds.flatMap((kind) => {
        const { called, pattern, holds = () => true } = finders[kind];
        const times = [...plain.matchAll(pattern)].filter(([match]) => holds(match)).length;
        return times === 0 ? [] : [`${called} (${times})`];
      });
      return found.length === 0 ? undefined : `it contains personal data: ${found.join(", ")}`;
    },
  });
}
