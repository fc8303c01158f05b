"""The tools `web_fetch` and `web_search`: pages and results of the web, asked for without reaching anything inside."""
