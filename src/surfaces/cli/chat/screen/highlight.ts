import type { Role, Theme } from "./theme.ts";

const words =
  "abstract|and|as|async|await|begin|bool|boolean|break|case|catch|char|class|const|continue|def|default|defer|del|delete|do|done|elif|else|end|enum|esac|except|export|extends|extern|false|fi|final|finally|float|fn|for|foreach|from|func|function|go|goto|if|impl|implements|import|in|int|interface|is|lambda|let|local|long|loop|match|mod|module|mut|namespace|new|nil|none|None|not|null|of|or|package|pass|private|protected|pub|public|raise|readonly|return|select|self|static|string|struct|super|switch|then|this|throw|trait|true|True|False|try|type|typeof|undefined|union|unsafe|use|using|val|var|virtual|void|where|while|with|yield";
const sqlWords =
  "SELECT|FROM|WHERE|INSERT|INTO|VALUES|UPDATE|SET|DELETE|CREATE|TABLE|INDEX|JOIN|LEFT|INNER|ON|GROUP|ORDER|BY|LIMIT|AND|OR|NOT|NULL";

/** Languages in which `#` starts a comment. */
const hashLanguages = new Set([
  "sh",
  "bash",
  "shell",
  "zsh",
  "python",
  "py",
  "ruby",
  "rb",
  "yaml",
  "yml",
  "toml",
  "make",
  "dockerfile",
  "perl",
  "r",
]);

/**
 * Returns the lines of a piece of code, with words, texts, comments and numbers coloured. One pattern is used for
 * all languages: it recognizes the syntax that most of them share, and leaves the rest uncoloured.
 */
export function highlight(code: string, language: string | undefined, theme: Theme): string[] {
  const name = language?.toLowerCase() ?? "";
  if (name === "diff" || name === "patch") return code.split("\n").map((line) => diffLine(line, theme));
  if (name === "" || name === "text" || name === "txt") return code.split("\n");
  const comment = hashLanguages.has(name) ? "#.*" : name === "sql" ? "--.*" : String.raw`\/\/.*|\/\*.*?\*\/`;
  const keywords = name === "sql" ? `${sqlWords}|${sqlWords.toLowerCase()}` : words;
  const pattern = new RegExp(
    String.raw`(?<comment>${comment})|(?<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|${"`(?:\\\\.|[^`\\\\])*`"})|(?<number>\b\d[\d_.]*\b)|(?<keyword>\b(?:${keywords})\b)`,
    "gu",
  );
  return code.split("\n").map((line) =>
    line.length > 2_000
      ? line
      : line.replaceAll(pattern, (text, ...parts: readonly unknown[]) => {
          const groups = parts.at(-1) as Readonly<Record<string, string | undefined>>;
          const role = Object.entries(groups).find(([, value]) => value !== undefined)?.[0];
          return role === undefined ? text : theme.paint(role as Role, text);
        }),
  );
}

/** A line of a unified diff. */
export function diffLine(line: string, theme: Theme): string {
  if (line.startsWith("+") && !line.startsWith("+++")) return theme.paint("good", line);
  if (line.startsWith("-") && !line.startsWith("---")) return theme.paint("bad", line);
  if (line.startsWith("@@")) return theme.paint("accent", line);
  return line;
}
