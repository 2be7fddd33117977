import { Agent } from "reeve";
import { defineConfig } from "reeve/workspace";

/** An agent in code, beside those in `.reeve/agents`. It is used only after `reeve trust`. */
const greeter = new Agent({
  name: "greeter",
  description: "Greets customers",
  model: "anthropic/claude-sonnet-5",
  instructions: "Greet the customer in one sentence.",
});

export default defineConfig({ agents: [greeter], server: { agents: ["seller", "greeter"] } });
