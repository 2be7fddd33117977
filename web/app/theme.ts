import { effect, signal } from "@preact/signals";
import { kept, keep } from "../base/kept.ts";

type Theme = "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = kept("theme");

/** The theme: the one that the person chose, else that of the system. */
const theme = signal<Theme>(
  chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light",
);

export function switchTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  keep("theme", theme.value);
}

dark.addEventListener("change", ({ matches }) => {
  if (kept("theme") === null) theme.value = matches ? "dark" : "light";
});

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});
