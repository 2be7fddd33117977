import { withoutSecrets } from "../../../kernel/index.ts";
import type { Terminal } from "./terminal.ts";

/**
 * The name of a variable of the environment, as a setting contains it. Another text is not shown: it may be the secret
 * itself, written in place of the name.
 */
export function variableName(text: string, env: Terminal["env"]): string {
  const isName = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/u.test(text) && withoutSecrets(text) === text;
  return isName || env[text] !== undefined ? text : "(hidden: it is not the name of a variable)";
}
