export * from "../assembly/guardrails.ts";
