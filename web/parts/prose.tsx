import type { ComponentChildren, JSX } from "preact";

/** The text of a model: paragraphs, lists, code blocks, inline code and emphasis. Anything else stays as it is. */
export function Prose({
  text,
  children,
}: {
  readonly text: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const blocks = text.split(/(```[^\n]*\n[\s\S]*?(?:```|$))/u).filter((block) => block.trim() !== "");
  return (
    <div class="prose">
      {blocks.map((block, at) => (
        <Block key={at} text={block}>
          {at === blocks.length - 1 ? children : null}
        </Block>
      ))}
      {blocks.length === 0 && <p>{children}</p>}
    </div>
  );
}

function Block({
  text,
  children,
}: {
  readonly text: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  if (text.startsWith("```"))
    return (
      <pre>
        {text.replace(/^```[^\n]*\n/u, "").replace(/\n?```$/u, "")}
        {children}
      </pre>
    );
  const paragraphs = text.trim().split(/\n{2,}/u);
  return (
    <>
      {paragraphs.map((paragraph, at) => (
        <Paragraph key={at} text={paragraph}>
          {at === paragraphs.length - 1 ? children : null}
        </Paragraph>
      ))}
    </>
  );
}

function Paragraph({
  text,
  children,
}: {
  readonly text: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  const lines = text.split("\n");
  if (lines.every((line) => /^\s*(?:[-*]|\d+\.) /u.test(line)))
    return (
      <ul>
        {lines.map((line, at) => (
          <li key={at}>
            <Inline text={line.replace(/^\s*(?:[-*]|\d+\.) /u, "")} />
            {at === lines.length - 1 ? children : null}
          </li>
        ))}
      </ul>
    );
  const heading = /^#{1,6} (.*)$/u.exec(text)?.[1];
  return (
    <p>
      {heading === undefined ? <Inline text={text} /> : <strong>{heading}</strong>}
      {children}
    </p>
  );
}

function Inline({ text }: { readonly text: string }): JSX.Element {
  const pieces = text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/u);
  return (
    <>
      {pieces.map((piece, at) => {
        if (piece.startsWith("`") && piece.length > 2) return <code key={at}>{piece.slice(1, -1)}</code>;
        if (piece.startsWith("**") && piece.length > 4) return <strong key={at}>{piece.slice(2, -2)}</strong>;
        return piece;
      })}
    </>
  );
}
