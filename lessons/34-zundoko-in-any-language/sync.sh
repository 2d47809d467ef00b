# Asked what should be there for a Choir: nothing yet.
echo '{"status": {}, "children": []}'
