// theme.js: dark or light, before the first paint. A classic script, because modules run too late.
// Nothing stored: as the system says (prefers-color-scheme).
(() => {
  try {
    const theme = localStorage.getItem('deepinfer.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch {
    // The browser denies storage: the system's choice it is.
  }
})();
