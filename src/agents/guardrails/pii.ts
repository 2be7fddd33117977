import { Fault, type Guardrail } from "../../kernel/index.ts";
import { piiPatterns, type PiiKind } from "../middleware/pii-pattern.ts";
import { plainText } from "./guarded-text.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface PiiOptions {
  /** Unless told: all but `ip`. */
  readonly kinds?: readonly PiiKind[];
  /** Unless told, noted in the input and withheld in the output. */
  readonly stages?: GuardedStages;
}

const called: Readonly<Record<PiiKind, string>> = {
  card: "payment card number",
  iban: "IBAN",
  ssn: "US social security number",
  email: "e-mail address",
  phone: "phone number",
  ip: "IP address",
};

const usual: readonly PiiKind[] = ["card", "iban", "ssn", "email", "phone"];

/** Finds personal data. Card numbers count only if their check digit is right (Luhn), IBANs only if theirs are. */
export function pii({
  kinds = usual,
  stages = { input: "warn", output: "block" },
}: PiiOptions = {}): Guardrail {
  const unknown = kinds.find((kind) => !Object.hasOwn(called, kind));
  if (unknown !== undefined || kinds.length === 0) {
    throw new Fault(
      "invalid_argument",
      `kinds of pii has ${JSON.stringify(unknown ?? [])}: name some of ${Object.keys(called).join(", ")}`,
    );
  }
  return textGuardrail({
    name: "pii",
    stages,
    examine: (text) => {
      const plain = plainText(text);
      const found = kinds.flatMap((kind) => {
        const { pattern, isReal = () => true } = piiPatterns[kind];
        const times = [...plain.matchAll(pattern)].filter(([match]) => isReal(match)).length;
        return times === 0 ? [] : [`${called[kind]} (${times})`];
      });
      return found.length === 0 ? undefined : `it contains personal data: ${found.join(", ")}`;
    },
  });
}
