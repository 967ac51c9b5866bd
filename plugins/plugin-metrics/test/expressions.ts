/** The names of metrics, and of labels, in an expression of PromQL. */
export function namesIn(expression: string): { readonly metrics: readonly string[]; readonly labels: readonly string[] } {
  const labels: string[] = [];
  const bare = expression
    .replace(/\$__\w+|\$\w+/g, '')
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => {
      labels.push(...Array.from(matchers.matchAll(/(\w+)\s*[=!]/g), ([, label = '']) => label));
      return '';
    })
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, list: string) => {
      labels.push(...list.split(',').map((label) => label.trim()));
      return ' ';
    })
    .replace(/\[[^\]]*\]/g, '');
  const words = Array.from(bare.matchAll(/\b([a-z_][a-z0-9_]*)\b(?!\s*\()/g), ([, word = '']) => word);
  const keywords = new Set(['and', 'or', 'unless', 'offset', 'by', 'm', 'h']);
  return { metrics: [...new Set(words.filter((word) => !keywords.has(word)))], labels: [...new Set(labels)] };
}
