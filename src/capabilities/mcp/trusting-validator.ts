import type { ClientOptions } from "@modelcontextprotocol/client";

/**
 * Validator for the MCP packages that accepts every value. Their own validator compiles patterns with `RegExp`,
 * which backtracks. The other side chooses both the schema and the value: `outputSchema` with a result, or
 * `requestedSchema` with an answer. So one reply could block the process. Results are data for the model, and the
 * server that asked a question checks the answer.
 */
export const trustingValidator: NonNullable<ClientOptions["jsonSchemaValidator"]> = {
  // `never` stands for the type that the caller names. It is not checked.
  getValidator: () => (value) => ({ valid: true, data: value as never, errorMessage: undefined }),
};
