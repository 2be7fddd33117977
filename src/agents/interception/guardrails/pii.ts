import { Fault, type Guardrail, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { piiPatterns, type PiiKind } from "../middleware/pii-pattern.ts";
import { comparableText } from "../middleware/comparable-text.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

/** Options of `pii`. */
export interface PiiOptions {
  /** The kinds to find. Default: all except `ip`. */
  readonly kinds?: readonly PiiKind[];
  /** The decision per stage. Default: `warn` at `input`, `block` at `output`. */
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

const knownOptions = optionTable({ kinds: is.list(), stages: is.any } satisfies OptionKinds<PiiOptions>);

/**
 * Creates a guardrail that finds personal data, even if it is written with digits of other scripts or with
 * invisible characters. Card numbers and IBANs are found only with a correct check digit.
 */
export function pii(options: PiiOptions = {}): Guardrail {
  const { kinds = usual, stages = { input: "warn", output: "block" } } = knownOptions.read("pii()", options);
  const unknown = kinds.find((kind) => !Object.hasOwn(called, kind));
  if (unknown !== undefined || kinds.length === 0) {
    throw new Fault(
      "invalid_argument",
      `invalid kinds ${JSON.stringify(unknown ?? [])} of pii: expected some of ${Object.keys(called).join(", ")}`,
    );
  }
  return textGuardrail({
    name: "pii",
    stages,
    examine: (text) => {
      const plain = comparableText(text).text.replaceAll(/\s+/gu, " ");
      const found = kinds.flatMap((kind) => {
        const { pattern, isReal = () => true } = piiPatterns[kind];
        const times = [...plain.matchAll(pattern)].filter(([match]) => isReal(match)).length;
        return times === 0 ? [] : [`${called[kind]} (${times})`];
      });
      return found.length === 0 ? undefined : `the text contains personal data: ${found.join(", ")}`;
    },
  });
}
