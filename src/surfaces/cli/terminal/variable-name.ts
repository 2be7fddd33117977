import { withoutSecrets } from "../../../kernel/index.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Returns the name of an environment variable, as a setting contains it. A text that is not a valid name is not
 * shown, because it may be the secret itself, entered in place of the name.
 */
export function variableName(text: string, env: Terminal["env"]): string {
  const isName = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/u.test(text) && withoutSecrets(text) === text;
  return isName || env[text] !== undefined ? text : "(hidden: it is not the name of a variable)";
}
